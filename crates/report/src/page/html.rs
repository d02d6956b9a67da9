//! One HTML file: the page's script and style, and the document as data.

use crate::page::Page;
use crate::rendering::document::escape_text;

/// The built front end: script, style, and the hashes that allow them and nothing else.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));
/// Its style.
pub const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.css"));
const HASHES: &str = include_str!(concat!(env!("OUT_DIR"), "/page.hashes"));

/// The program was built without its front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPage;

impl std::fmt::Display for NoPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "this program was built without its web page, which Node.js makes: run `make build` (or scripts/build-web, then \
             cargo build or cargo install again); the other formats do without",
        )
    }
}

impl std::error::Error for NoPage {}

/// One file that needs nothing else.
pub fn html(page: &Page) -> Result<String, NoPage> {
    let json = serde_json::to_string(page).expect("names and finite numbers become JSON");
    let mut hashes = HASHES.split_whitespace();
    let (Some(script), Some(style)) = (hashes.next(), hashes.next()) else { return Err(NoPage) };
    let policy = format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'"
    );
    let title = escape_text(&page.title);
    let sentences: String =
        page.sentences.iter().map(|sentence| format!("<li>{}</li>\n", escape_text(&sentence.text))).collect();
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <div id=\"page\"><main><h1>{title}</h1>\n<ul>\n{sentences}</ul></main></div>\n\
         <script type=\"application/json\" id=\"document\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        in_script(&json)
    ))
}

/// The page without a document, which then asks a server for it. Script and style are at `page.js` and `page.css`.
pub fn shell() -> Result<&'static str, NoPage> {
    if SCRIPT.is_empty() {
        return Err(NoPage);
    }
    Ok("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>stacklab</title>\n\
        <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/page.css\">\n</head>\n<body>\n\
        <div id=\"page\"></div>\n<script src=\"/page.js\"></script>\n</body>\n</html>\n")
}

/// JSON escaped for a script element: without `<`, `>`, `&` and the line separators that old readers break at.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_place() {
        let hostile = "</script><script>alert(1)</script>\u{2028}\u{2029}&<!--";
        let json = serde_json::to_string(hostile).unwrap();
        let safe = in_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
        assert_eq!(escape_text("<a b=\"c\">'&\u{1b}"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp; ");
    }

    #[test]
    fn built_script_and_style_do_not_close_their_tags() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }
}
