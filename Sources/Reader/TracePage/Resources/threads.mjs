// Threads by their names: pools of equal ones are a group.

/// Groups of indices of what has a `name` and a `process`, in the order of the first of each. Numbers at the end of a name count workers;
/// a main thread, whose name others inherit, is by itself.
export function groups(threads) {
  const known = new Map();
  threads.forEach((thread, index) => {
    const name = thread.name.replace(/[-_ #:/.]*\d+$/, "") || thread.name, key = [thread.process, thread.isMain ? "main" : "", name].join("\n");
    if (!known.has(key)) known.set(key, { key, name, process: thread.process, members: [] });
    known.get(key).members.push(index);
  });
  return [...known.values()];
}

/// The lanes from top to bottom: of a closed group of several its first stands for all.
/// - hidden: indices, - open: keys of groups
export function arranged(threads, { hidden, open }) {
  const lanes = [];
  for (const group of groups(threads)) {
    const members = group.members.filter(index => !hidden.has(index));
    if (members.length > 1 && !open.has(group.key)) lanes.push({ group, members, isGroup: true });
    else for (const index of members) lanes.push({ group, members: [index], isGroup: false });
  }
  return lanes;
}

/// A main thread of several processes goes by its process.
export function threadName(thread) {
  const name = `${thread.name || "thread"} ${thread.tid}`;
  return !thread.process ? name : thread.isMain ? thread.process : `${thread.process}: ${name}`;
}

/// Returns true when a search for threads means it: part of its name, its number, its process.
export const isMeant = (thread, text) => threadName(thread).toLowerCase().includes(text.trim().toLowerCase());
