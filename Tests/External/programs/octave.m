% Runs the tests in each EVERY-th file of a folder, and appends a line of JSON for each file. The name says how many passed.
%
%     octave-cli octave.m CASES FOLDER EVERY
words = argv ();
record = fullfile (pwd (), "log");
[~, names] = unix (["find '" words{2} "' -name '*.m' -o -name '*tst' | LC_ALL=C sort"]);
names = strsplit (strtrim (names), "\n");
for path = names(1:str2double (words{3}):end)
  name = strrep (path{1}, [words{2} "/"], "");
  addpath (fileparts (path{1})); % where some have functions of their own
  [passed, all, expected, known, missing] = test (path{1}, "quiet", record);
  if (all == 0)
    continue
  endif
  if (passed == all - expected - known)
    outcome = "ok";
  else
    outcome = sprintf ("failed: %d", all - passed - expected - known);
    puts (fileread (record));
  endif
  cases = fopen (words{1}, "a");
  fprintf (cases, "[\"%s (%d)\", \"%s\"]\n", name, all, outcome);
  fclose (cases);
endfor
