//! The document's types as the front end has them. A test compares; `make types` writes them.

use crate::page::*;
use crate::rendering::document::{Block, Footnotes, Table};
use ts_rs::{Config, TS};

/// Where they are.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/document.ts");

fn declared<T: TS>() -> String {
    format!("export {}\n", T::decl(&Config::new().with_large_int("number")))
}

/// The declarations of all types, in the order of the file.
fn declare_all() -> Vec<String> {
    vec![
        declared::<Page>(),
        declared::<Fact>(),
        declared::<ForestRow>(),
        declared::<ControlView>(),
        declared::<Span>(),
        declared::<WhyView>(),
        declared::<WaterfallRow>(),
        declared::<FlameView>(),
        declared::<LossView>(),
        declared::<LossLine>(),
        declared::<LossPointView>(),
        declared::<Sentence>(),
        declared::<Matrix>(),
        declared::<MatrixRow>(),
        declared::<MetricView>(),
        declared::<FactorView>(),
        declared::<CellView>(),
        declared::<EstimateView>(),
        declared::<Outcome>(),
        declared::<ComparisonView>(),
        declared::<LimitView>(),
        declared::<PublishedSeries>(),
        declared::<RunsView>(),
        declared::<Remark>(),
        declared::<FigureColumn>(),
        declared::<RunDetail>(),
        declared::<EndView>(),
        declared::<SlicesView>(),
        declared::<ArmSlices>(),
        declared::<ChannelView>(),
        declared::<AirLane>(),
        declared::<SeriesView>(),
        declared::<HistogramView>(),
        declared::<CpuView>(),
        declared::<TestbedView>(),
        declared::<DrawingView>(),
        declared::<DrawnHost>(),
        declared::<LinkView>(),
        declared::<HostView>(),
        declared::<Listing>(),
        declared::<CampaignRow>(),
        declared::<Headline>(),
        declared::<Compared>(),
        declared::<FleetListing>(),
        declared::<FleetRow>(),
        declared::<FleetPage>(),
        declared::<FleetVerdicts>(),
        declared::<FleetPairRow>(),
        declared::<FleetCell>(),
        declared::<MeasuredBlock>(),
        declared::<FleetAgent>(),
        declared::<Block>(),
        declared::<Table>(),
        declared::<Footnotes>(),
        declared::<Changed>(),
        declared::<Refused>(),
    ]
}

fn types() -> String {
    let heading = format!(
        "// The document's types, made from crates/report/src/page/document by `make types`; a test compares.\n\n\
         export const PAGE_FORMAT_VERSION = {PAGE_FORMAT_VERSION};\n\n"
    );
    heading + &declare_all().join("\n")
}

#[test]
fn the_front_end_has_the_types_of_this_crate() {
    let types = types();
    if std::env::var_os("STACKLAB_WRITE_TYPES").is_some() {
        std::fs::write(FILE, &types).unwrap();
    }
    let found = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(found == types, "{FILE} is out of date: run `make types`");
}
