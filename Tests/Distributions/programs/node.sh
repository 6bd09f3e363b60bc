# packages: nodejs
# records: node*
# status: 6
# version: node --version
# timeout: 300
cat >main.js <<'END'
const crypto = require('crypto'), fs = require('fs'), zlib = require('zlib'), { execFileSync, spawn } = require('child_process');
const http = require('http'), { Worker, isMainThread, parentPort } = require('worker_threads'), dns = require('dns');
if (!isMainThread) { let s = 0; for (let i = 0; i < 1e6; i++) s += i % 7; parentPort.postMessage(s); return; }
(async () => {
  let sum = 0; for (let i = 0; i < 3e6; i++) sum = (sum + i * i) % 1000003;
  console.log(sum, crypto.createHash('sha256').update('text').digest('hex'));
  const packed = zlib.gzipSync('many words '.repeat(1000)); console.log(zlib.gunzipSync(packed).length);
  console.log(await new Promise(r => crypto.pbkdf2('p', 's', 1000, 16, 'sha512', (_, key) => r(key.toString('hex')))));
  const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  console.log(crypto.verify('sha256', Buffer.from('x'), publicKey, crypto.sign('sha256', Buffer.from('x'), privateKey)));
  console.log(await Promise.all([1, 2].map(() => new Promise(r => new Worker(__filename).on('message', r)))));
  console.log(execFileSync('sh', ['-c', 'echo from a child']).toString().trim());
  const child = spawn('cat'); child.stdin.end('through cat');
  console.log(await new Promise(r => child.stdout.on('data', d => r(String(d)))));
  const server = http.createServer((q, a) => a.end('page ' + q.url)).listen(0, '127.0.0.1', () => {
    http.get({ port: server.address().port, host: '127.0.0.1', path: '/x', agent: false }, a => a.on('data', d => { console.log(String(d)); server.close(); }));
  });
  await new Promise(r => server.on('close', r));
  fs.writeFileSync('file', JSON.stringify([...Array(100).keys()])); console.log(fs.readFileSync('file').length);
  console.log(await new Promise(r => dns.lookup('localhost', { family: 4 }, (_, a) => r(a))));
  console.log(new Intl.NumberFormat('en').format(1234567.5), /(?<year>\d{4})/u.exec('in 2024').groups.year);
  process.exitCode = 6;
})();
END
node main.js
