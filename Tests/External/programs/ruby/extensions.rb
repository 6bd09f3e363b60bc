# Uses one of the bundled C extensions while every allocation collects garbage. Prints the same in every run.
USES = {
  'bigdecimal' => -> { puts (BigDecimal('1.1') * BigDecimal('3.3')).to_s, BigDecimal('2').sqrt(30).round(25).to_s, BigDecimal('1') / 3 < 1, BigDecimal('12.5').divmod(3).map(&:to_s).inspect },
  'cgi/escape' => -> { puts CGI.escapeHTML('<a href="x">&\'</a>'), CGI.unescapeHTML('&lt;&#65;&gt;'), CGI.escape('a b&c/ü'), CGI.unescape('a+b%26c', 'UTF-8') },
  'continuation' => -> { n = 0; c = callcc { |k| k }; n += 1; c.call(c) if n < 3; puts n },
  'coverage' => -> { Coverage.start; file = File.join(Dir.pwd, 'covered.rb'); File.write(file, "def f(x)\n  x + 1\nend\n3.times { f(1) }\n"); load file; puts Coverage.result[file].inspect },
  'date' => -> { d = Date.new(2024, 2, 29); puts d + 365, d.strftime('%A %j'), Date.parse('3rd Feb 2001').iso8601, DateTime.parse('2001-02-03T04:05:06+07:00').to_s, Date.valid_date?(2023, 2, 29), Date._parse('10:20 pm').inspect },
  'digest' => -> { %w[MD5 SHA1 SHA256 SHA512 RMD160].each { |n| puts Digest.const_get(n).hexdigest('text' * 100) }; puts Digest::SHA256.new.update('a').update('b').base64digest },
  'erb/escape' => -> { puts ERB::Escape.html_escape('<b>&"</b>') },
  'etc' => -> { puts Etc.getpwuid(0).name, Etc.getgrgid(0).name, Etc.getpwnam('root').uid, Etc.uname[:sysname], Etc.sysconf(Etc::SC_PAGESIZE), Etc.passwd { |u| break u.name } },
  'fiddle' => -> { libc = Fiddle.dlopen(nil); f = Fiddle::Function.new(libc['strlen'], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_LONG); puts f.call('hello')
    compare = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_INT, [Fiddle::TYPE_VOIDP] * 2) { |a, b| a.to_s(1) <=> b.to_s(1) }
    text = +'qwertyuiop'; Fiddle::Function.new(libc['qsort'], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG, Fiddle::TYPE_LONG, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID).call(text, text.size, 1, compare); puts text },
  'io/console' => -> { require 'pty'; m, s = PTY.open; s.winsize = [30, 90]; puts s.winsize.inspect; s.raw!; s.echo = false; puts s.echo?; s.cooked!; m.close; s.close },
  'io/nonblock' => -> { r, w = IO.pipe; w.nonblock = true; puts w.nonblock?, w.nonblock(false) { w.nonblock? } },
  'io/wait' => -> { r, w = IO.pipe; puts r.wait_readable(0).inspect; w << 'text'; puts r.wait_readable(1) == r, r.read_nonblock(10) },
  'json' => -> { o = { 'list' => [1, 2.5, nil, true, 'ü€😀', { 'deep' => [[[]]] }], 'text' => "a\"\\\n" * 5 }; s = JSON.generate(o); puts s, JSON.parse(s) == o, JSON.pretty_generate(o).size; begin JSON.parse('[1,'); rescue JSON::ParserError; puts 'refused'; end },
  'monitor' => -> { m = Monitor.new; c = m.new_cond; got = []; t = Thread.new { m.synchronize { c.wait_while { got.empty? }; puts got.shift } }; m.synchronize { m.synchronize { got << 'handed over' }; c.signal }; t.join },
  'nkf' => -> { puts NKF.nkf('-w', "\xA4\xA2\xA4\xA4".dup.force_encoding('EUC-JP')), NKF.guess("\x82\xA0").to_s },
  'objspace' => -> { s = 'x' * 1000; puts ObjectSpace.memsize_of(s) >= 1000, ObjectSpace.memsize_of_all(String) > 0, ObjectSpace.count_objects_size.key?(:TOTAL), ObjectSpace.reachable_objects_from([s]).include?(s), ObjectSpace.dump(s).include?('STRING') },
  'openssl' => -> { key = OpenSSL::PKey::RSA.new(512 * 2); s = key.sign('SHA256', 'text'); puts key.verify('SHA256', s, 'text'), key.public_key.verify('SHA256', s, 'other')
    c = OpenSSL::Cipher.new('aes-256-cbc').encrypt; c.key = 'k' * 32; c.iv = 'i' * 16; e = c.update('secret' * 10) + c.final; puts e.unpack1('H*'); d = OpenSSL::Cipher.new('aes-256-cbc').decrypt; d.key = 'k' * 32; d.iv = 'i' * 16; puts d.update(e) + d.final
    cert = OpenSSL::X509::Certificate.new; cert.version = 2; cert.serial = 1; cert.subject = cert.issuer = OpenSSL::X509::Name.parse('/CN=here'); cert.public_key = key.public_key; cert.not_before = Time.at(0); cert.not_after = Time.at(2**31 - 1); cert.sign(key, 'SHA256'); puts OpenSSL::X509::Certificate.new(cert.to_pem).verify(key), OpenSSL::HMAC.hexdigest('SHA1', 'k', 'v'), OpenSSL::BN.new('12345678901234567890').mod_exp(3, 1000007) },
  'pathname' => -> { p = Pathname.new('/usr/../etc/./passwd'); puts p.cleanpath, p.exist?, p.realpath, p.basename, p.relative_path_from(Pathname.new('/etc')), Pathname.new('a').join('b', '..', 'c'), p.sub('etc', 'x') },
  'psych' => -> { o = { 'a' => [1, 2.5, nil, true, 'text: with colon', "two\nlines"], 'b' => { 'c' => 'd' * 50 } }; y = Psych.dump(o); puts y, Psych.safe_load(y) == o, Psych.load("- &x 1\n- *x\n", aliases: true).inspect; begin Psych.load('a: [1'); rescue Psych::SyntaxError; puts 'refused'; end },
  'pty' => -> { PTY.spawn('sh', '-c', 'read x; echo got $x; exit 3') { |r, w, pid| w.puts 'line'; text = (r.each_line.to_a rescue []); Process.wait(pid); puts $?.exitstatus } },
  'rbconfig/sizeof' => -> { puts RbConfig::SIZEOF['long'], RbConfig::LIMITS['INT_MAX'], RbConfig::SIZEOF.size > 20 },
  'readline' => -> { Readline.input = File.open('/dev/null'); Readline.completion_proc = ->(s) { [s] }; Readline::HISTORY << 'one' << 'two'; puts Readline::HISTORY.to_a.inspect, Readline::VERSION.class, Readline.completion_proc.call('x').inspect },
  'ripper' => -> { puts Ripper.sexp("def f(a, *b, c: 1) = a + \"x\#{b}\"").inspect, Ripper.lex("x = [1, :y]").map { |t| t[2] }.inspect, Ripper.tokenize('puts <<~E
    here
    E
').join.size, Ripper.sexp('def').inspect },
  'socket' => -> { server = TCPServer.new('127.0.0.1', 0); t = Thread.new { c = server.accept; c.puts c.gets.reverse; c.close }; c = TCPSocket.new('127.0.0.1', server.addr[1]); c.puts 'hello'; puts c.read.strip; t.join
    a, b = UNIXSocket.pair; r, w = IO.pipe; a.send_io(r); got = b.recv_io; w << 'passed'; w.close; puts got.read; puts Addrinfo.tcp('127.0.0.1', 80).inspect_sockaddr, Socket.getservbyname('http') },
  'stringio' => -> { s = StringIO.new(+'one
two
three'); puts s.gets, s.read(2), s.pos, s.each_line.to_a.inspect; s.ungetc('ü'); puts s.getc; s.rewind; s.write('X' * 20); s.printf('%05d', 42); puts s.string, s.truncate(3), s.string.size },
  'strscan' => -> { s = StringScanner.new('key: 12, other: 345'); found = []; found << [s[1], s[2]] while s.scan_until(/(?<name>\w+): (\d+)/) || s.scan_until(/(\w+): (\d+)/); puts found.inspect, s.eos?; s.string = 'abc'; puts s.getch, s.check(/b/), s.rest, s.peek(5), s.unscan.pos },
  'syslog' => -> { puts Syslog::LOG_ERR, Syslog::LOG_UPTO(Syslog::LOG_ERR), Syslog.opened? },
  'zlib' => -> { text = 'some text that repeats, ' * 200; z = Zlib.deflate(text, 9); puts z.size, Zlib.inflate(z) == text, Zlib.crc32(text), Zlib.adler32(text); io = StringIO.new; g = Zlib::GzipWriter.new(io); g.mtime = 1; 20.times { |i| g.puts "line #{i}" }; g.close; puts Zlib::GzipReader.new(StringIO.new(io.string)).readlines.size, Zlib.gunzip(Zlib.gzip('x')); begin Zlib.inflate('wrong'); rescue Zlib::DataError; puts 'refused'; end },
}
name = ARGV.fetch(0)
begin
  require 'stringio'
  require name
rescue LoadError
  exit 77
end
$stdout.sync = true
2.times do
  GC.stress = true
  USES.fetch(name).call
  GC.stress = false
  GC.start
end
