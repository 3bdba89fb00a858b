// Code with colours: Python, LLVM IR, assembly. Very long listings stay plain.

import hljs from "highlight.js/lib/core";
import llvm from "highlight.js/lib/languages/llvm";
import python from "highlight.js/lib/languages/python";
import x86asm from "highlight.js/lib/languages/x86asm";

import { h } from "../dom";

hljs.registerLanguage("python", python);
hljs.registerLanguage("llvm", llvm);
hljs.registerLanguage("x86asm", x86asm);

export type Language = "python" | "llvm" | "x86asm";
const LONGEST = 400_000;

export function code(text: string, language: Language, classes = ""): HTMLElement {
  const element = h("code", { class: `hljs ${classes}` });
  if (text.length > LONGEST) element.textContent = text;
  else element.innerHTML = hljs.highlight(text, { language }).value; // escapes the text
  return element;
}

/** Lines around one line of a file, which is marked. */
export function excerpt(text: string, line: number, around = 3): HTMLElement {
  const lines = text.split("\n");
  const first = Math.max(1, line - around);
  const rows = lines.slice(first - 1, line + around).map((content, n) => {
    const number = first + n;
    return h(`div.row${number === line ? ".here" : ""}`, {}, h("span.number", {}, number), code(content || " ", "python"));
  });
  return h("div.excerpt", {}, ...rows);
}
