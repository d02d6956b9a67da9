//! Programs that drive the traffic of a trial. Each is one file of this folder and one line of the table.

mod definition;

pub use definition::GeneratorDef;

use crate::names::text_of_names;

/// Generates the generators of the table: one module and one variant for each. Each module holds a `DEF`.
macro_rules! generators {
    ($($variant:ident = $module:ident,)+) => {
        $(mod $module;)+

        /// The program that drives the traffic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Generator {
            $(#[doc = concat!("Defined in `", stringify!($module), ".rs`.")] $variant,)+
        }

        impl Generator {
            /// Every generator, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// Every name, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($module::DEF.name,)+];

            /// The generator's definition.
            pub const fn definition(self) -> &'static GeneratorDef {
                match self { $(Self::$variant => &$module::DEF,)+ }
            }
        }
    };
}

generators! {
    Stacklab = stacklab,
    Iperf3 = iperf3,
    Iperf = iperf,
    Netperf = netperf,
    Ditg = ditg,
}

text_of_names!(Generator, "generator");

impl Generator {
    /// The name used in study files, records and reports.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Whether it is a program that is not part of stacklab.
    pub fn is_other(self) -> bool {
        self != Generator::Stacklab
    }
}
