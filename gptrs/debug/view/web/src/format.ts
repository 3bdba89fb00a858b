// Numbers as a person reads them: three digits and a unit.

function scaled(value: number, step: number, units: string[]): string {
  let number = value;
  let unit = 0;
  while (number >= step * 0.99995 && unit < units.length - 1) {
    number /= step;
    unit += 1;
  }
  const digits = number >= 100 || Number.isInteger(number) ? 0 : number >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${units[unit]}`.trim();
}

export const bytes = (n: number): string => scaled(n, 1000, ["B", "kB", "MB", "GB", "TB"]);
export const flops = (n: number): string => scaled(n, 1000, ["FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
export const time = (ns: number): string => scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
export const count = (n: number): string => n.toLocaleString("en-US");

export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

/** A share of a whole. */
export function percent(part: number, whole: number): string {
  if (!whole) return "0 %";
  const share = (100 * part) / whole;
  return share > 0 && share < 0.1 ? "<0.1 %" : `${share.toFixed(share < 10 ? 1 : 0)} %`;
}

/** The last parts of a path. */
export function shortPath(path: string): string {
  return path.split("/").slice(-2).join("/");
}
