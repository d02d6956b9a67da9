// Text clipped to a number of letters; the full text is in the accessible label.

/** The beginning of a text that is too long. */
export function clipped(text: string, letters: number): string {
  return text.length > letters ? text.slice(0, letters - 1) + "…" : text;
}

/** `6in4, gre4 and 9 more`. */
export function several(names: readonly string[], letters: number): string {
  const whole = names.join(", ");
  if (whole.length <= letters) return whole;
  for (let shown = names.length - 1; shown > 0; shown--) {
    const text = `${names.slice(0, shown).join(", ")} and ${names.length - shown} more`;
    if (text.length <= letters) return text;
  }
  return clipped(whole, letters);
}

/** The parts in a row, in lines that break between parts. */
export function wrapped(parts: readonly string[], letters: number): string[] {
  const lines: string[] = [];
  parts.forEach((part, place) => {
    const text = place + 1 < parts.length ? `${part},` : part;
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + text.length <= letters) lines[lines.length - 1] = `${last} ${text}`;
    else lines.push(clipped(text, letters));
  });
  return lines;
}
