// The page: of the embedded document, or of a server.
import { effect } from "@preact/signals";
import { render } from "preact";
import { PAGE_FORMAT_VERSION, type Page } from "./document";
import { PageView } from "./PageView";
import { Serve } from "./serve/Serve";
import "./style.css";
import { otherTheme, theme } from "./theme";

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

function Frame() {
  const text = document.getElementById("document")?.textContent;
  return (
    <>
      <header>
        <span class="brand">stacklab</span>
        <button type="button" class="theme" onClick={otherTheme}>{theme.value === "dark" ? "light" : "dark"}</button>
      </header>
      <main>{typeof text === "string" ? <Embedded text={text} /> : <Serve />}</main>
    </>
  );
}

let embedded: Page | undefined;

function Embedded({ text }: { text: string }) {
  embedded ??= JSON.parse(text) as Page;
  if (embedded.format !== PAGE_FORMAT_VERSION) return <p role="alert">This file's document is of another version than its page.</p>;
  return <PageView page={embedded} fetch={undefined} />;
}

const root = document.getElementById("page")!;
root.textContent = "";
render(<Frame />, root);
document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
