# packages: libc-bin
# records: iconv
# version: iconv --version
# quick
printf 'Grüße, æøå, Ελλάδα, кириллица, 日本語\n' >text
for code in UTF-16 UCS-4LE UTF-7 GB18030 EUC-JISX0213 ISO-2022-JP-2; do
    iconv -f UTF-8 -t $code text >coded || echo "status $?"
    sha256sum <coded
    iconv -f $code -t UTF-8 coded
done
for code in ISO-8859-1 KOI8-R IBM850 SHIFT_JISX0213; do iconv -c -f UTF-8 -t $code text | sha256sum; done
iconv -f UTF-8 -t ASCII//TRANSLIT text
iconv -f UTF-8 -t ISO-8859-7 text || echo "status $?"
