// Three or more levels beside one baseline: their means and verdicts, as the program prints them.
import type { Page } from "../document";
import { Block } from "../serve/Block";

export function Levels({ page }: { page: Page }) {
  return <>{page.levels.map((block, place) => <Block key={place} block={block} />)}</>;
}
