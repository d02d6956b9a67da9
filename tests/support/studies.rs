//! What many study texts have in common.

/// The end of a study that compares both families: how its arms are measured, and in how many blocks.
macro_rules! families {
    ($arms:literal, $blocks:literal) => {
        concat!(
            "[blocks]\nschedule = \"",
            $arms,
            "\"\nmin = ",
            $blocks,
            "\nmax = ",
            $blocks,
            "\n[[comparison]]\nfactor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"\n"
        )
    };
}
pub(crate) use families;
