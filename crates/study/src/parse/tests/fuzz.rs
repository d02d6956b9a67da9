//! Random text and settings.

use crate::parse::tests::{QUICKSTART, parse_with_settings};
use proptest::prelude::*;

proptest! {
    /// Whatever is cut out of or put into a study, the answer is a study or errors that can be shown.
    #[test]
    fn no_text_makes_it_panic(at in 0..QUICKSTART.len(), cut in 0_usize..40, put in "[\\PC\n\"\\[\\]={}.]{0,8}") {
        let start = QUICKSTART.floor_char_boundary(at);
        let end = QUICKSTART.floor_char_boundary((at + cut).min(QUICKSTART.len())).max(start);
        let text = format!("{}{put}{}", &QUICKSTART[..start], &QUICKSTART[end..]);
        if let Err(errors) = parse_with_settings(&text, Some("paper"), &[&put]) {
            prop_assert!(errors.count() > 0);
            prop_assert!(errors.to_string().starts_with("error: "));
        }
    }

    #[test]
    fn no_setting_makes_it_panic(setting in "([a-z.]{0,12}=)?\\PC{0,20}") {
        if let Err(errors) = parse_with_settings(QUICKSTART, None, &[&setting]) {
            prop_assert!(errors.to_string().starts_with("error: "));
        }
    }
}
