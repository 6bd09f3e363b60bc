# packages: ruby
# records: ruby*
# status: 4
# version: ruby --version
cat >main.rb <<'END'
require 'digest'
require 'json'
require 'open3'
require 'openssl'
require 'socket'
require 'zlib'
words = Hash.new(0)
%w[a b c a b a].each { |w| words[w] += 1 }
puts JSON.generate(words), Digest::SHA256.hexdigest('text'), Zlib.inflate(Zlib.deflate('x' * 5000)).size
key = OpenSSL::PKey::EC.generate("prime256v1")
puts key.verify("SHA256", key.sign("SHA256", "data"), "data")
server = TCPServer.new('127.0.0.1', 0)
thread = Thread.new { client = server.accept; client.puts client.gets.upcase; client.close }
socket = TCPSocket.new('127.0.0.1', server.addr[1])
socket.puts 'through a socket'
puts socket.gets
thread.join
fiber = Fiber.new { 3.times { |i| Fiber.yield i * i }; :done }
puts 4.times.map { fiber.resume }.inspect
out, status = Open3.capture2('tr a-z A-Z; exit 2', stdin_data: 'to a child')
puts out, status.exitstatus
puts catch(:found) { (1..100).each { |i| throw :found, i if i * i > 500 } }
GC.start
GC.compact if GC.respond_to?(:compact)
puts (1..2000).map { |i| Object.new && i.to_s(7) }.sort.last, 2**200, Rational(1, 3) + 1
begin
  Integer('none')
rescue ArgumentError => e
  puts e.message
end
exit 4
END
ruby main.rb
