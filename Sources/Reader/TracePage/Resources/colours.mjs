// Colours of frames, in both themes.

/// A module has a hue of its own: warm for the program, cool for libraries.
export function hues(executable) {
  const known = new Map();
  return module => {
    let hue = known.get(module);
    if (hue === undefined) {
      let sum = 0;
      for (let i = 0; i < module.length; i++) sum = (sum * 31 + module.charCodeAt(i)) >>> 0;
      hue = module === executable ? 18 : 60 + sum % 260;
      known.set(module, hue);
    }
    return hue;
  };
}

/// Functions of a module differ a little, so that neighbours are distinguished.
export function shade(hue, fn, isDark) {
  const wobble = fn % 5 * 2;
  return isDark ? `hsl(${hue} 42% ${55 + wobble}%)` : `hsl(${hue} 68% ${76 + wobble}%)`;
}

/// Colour of threads, and of what was summed up.
export const plain = isDark => isDark ? "#39435a" : "#d3d9e4";

/// Red slower, blue faster; how strong follows the square root, so that small ones are seen too.
export function difference(change, largest, isDark) {
  if (change === 0) return isDark ? "#39435a" : "#e8ebf0";
  const strength = Math.sqrt(Math.min(Math.abs(change) / largest, 1));
  const light = isDark ? 30 + 32 * strength : 96 - 36 * strength;
  return `hsl(${change > 0 ? 4 : 216} ${30 + 50 * strength}% ${light}%)`;
}

/// Colours of states, in the order of their names in the schema: far enough apart also for those who do not see red, green or blue as
/// others do (colours.test.mjs).
const ofStates = {
  light: ["#27a765", "#ecde4b", "#f54c16", "#ba7ac2", "#226bc1", "#6a341f", "#bdc5db", "#4fc9fd", "#441f6e", "#898d91", "#f0f0f0"],
  dark: ["#26b05c", "#f2cb1b", "#d03e10", "#ce68ce", "#0265f6", "#743f27", "#545f6a", "#87effe", "#5e138a", "#a1a3a6", "#1f1f1f"],
};
export const stateColours = isDark => isDark ? ofStates.dark : ofStates.light;

/// Returns a colour of text that can be read on it.
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map(offset => parseInt(colour.slice(offset, offset + 2), 16));
  return red * 0.299 + green * 0.587 + blue * 0.114 > 120 ? "#10151f" : "#ffffff";
}
