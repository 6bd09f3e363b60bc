// For jsc: objects that a collection must leave, and those that it moves nothing of.
function tree(depth) { return depth ? { left: tree(depth - 1), right: tree(depth - 1), text: "node" + depth } : null; }
function count(node) { return node ? 1 + count(node.left) + count(node.right) : 0; }
const collect = typeof gc === "function" ? gc : fullGC;
let failures = 0;
for (let round = 0; round < 20; round++) {
    const kept = tree(10), texts = Array.from({ length: 500 }, (_, i) => "text".repeat(5) + i);
    collect();
    if (count(kept) !== 1023) failures++;
    texts.forEach((text, i) => { if (text !== "text".repeat(5) + i) failures++; });
}
const sorted = Array.from({ length: 300 }, (_, i) => i * 7919 % 300).sort((a, b) => { if (a % 50 === 0) collect(); return a - b; });
sorted.forEach((value, i) => { if (value !== i) failures++; });
const replaced = "a1b22c333".repeat(50).replace(/\d+/g, match => { if (match === "22") collect(); return match.length; });
if (replaced !== "a1b2c3".repeat(50)) failures++;
const back = JSON.parse(JSON.stringify(tree(6), (key, value) => { if (key === "text" && value === "node6") collect(); return value; }));
if (count(back) !== 63) failures++;
const weak = new WeakMap(), keys = Array.from({ length: 300 }, (_, i) => ({ i }));
keys.forEach(key => weak.set(key, { value: key.i }));
collect();
keys.forEach(key => { if (weak.get(key).value !== key.i) failures++; });
print(failures + " failures");
if (failures) throw new Error("objects were lost");
