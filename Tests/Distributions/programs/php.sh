# packages: php-cli
# records: php*
# status: 3
# version: php --version
cat >main.php <<'END'
<?php
echo json_encode(array_count_values(explode(' ', 'a b c a b a'))), "\n", hash('sha256', 'text'), "\n";
echo preg_replace_callback('/\d+/', fn($m) => $m[0] * 2, '1 and 20'), "\n", strlen(gzencode(str_repeat('x', 9000))) > 20, "\n";
function generate($n) { for ($i = 0; $i < $n; $i++) yield $i => $i * $i; }
$sum = 0; foreach (generate(20000) as $i => $square) $sum += $square % 7;
echo $sum, "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; }
$list = range(1, 3000); usort($list, fn($a, $b) => ($a * 7919) % 3001 <=> ($b * 7919) % 3001);
echo $list[0], ' ', md5(serialize($list)), "\n", shell_exec('echo from a shell');
$process = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
fwrite($pipes[0], 'through cat'); fclose($pipes[0]); echo stream_get_contents($pipes[1]), "\n"; proc_close($process);
$key = openssl_pkey_new(); openssl_sign('data', $signature, $key); echo openssl_verify('data', $signature, openssl_pkey_get_details($key)['key']), "\n";
echo date('Y-m-d', 86400 * 365), ' ', iconv('UTF-8', 'ISO-8859-1', 'é') === "\xe9" ? 'coded' : 'not', "\n";
exit(3);
END
php main.php
