//! The varied factors, and the resulting cells.

use super::setting::Setting;
use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf;
use crate::language::table::LEVELS;
use crate::parse::layers;
use crate::parse::tree::{Located, Table, TomlValue};
use crate::read::node::{At, items, whole};
use stacklab_model::{Cell, Factor, Family, SizeOf, Transport, once_each};
use std::collections::HashSet;

/// Maximum number of cells of a study: more could not be measured in a lifetime, and indicate a typing error.
const MOST_CELLS: usize = 10_000;

/// The levels of every factor. A factor has no levels if they are all wrong or missing.
pub(super) struct Factors {
    pub place: Option<Location>,
    pub family: Vec<At<Family>>,
    pub transport: Vec<At<Transport>>,
    pub size_of: Vec<At<SizeOf>>,
    pub size: Vec<At<u32>>,
    pub replica: Vec<At<String>>,
    /// The other factors that the study has.
    pub settings: Vec<Setting>,
    /// The minimum MTU of the study's links; `None` if it is itself wrong.
    pub least_mtu: Option<At<u32>>,
}

impl Factors {
    /// Reads them; `bed_mtu` is the MTU if the study does not vary it.
    fn read(node: Option<&Located>, bed_mtu: Option<At<u32>>, problems: &Problems) -> Self {
        let key = |name| node.and_then(|node| node.get(name));
        Factors {
            place: node.map(|node| node.place.clone()),
            family: items(key("family"), leaf::name, problems),
            transport: items(key("transport"), leaf::name, problems),
            size_of: items(key("size_of"), leaf::name, problems),
            size: items(key("size"), whole, problems),
            replica: items(key("replica"), leaf::text, problems),
            settings: Setting::read(node, problems),
            least_mtu: items(key("mtu"), whole, problems).into_iter().min_by_key(|mtu| mtu.value).or(bed_mtu),
        }
    }

    /// A setting, if the study has it.
    pub(super) fn setting(&self, factor: Factor) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.factor == factor)
    }

    /// The levels of a setting; none if the study does not have it.
    pub(super) fn setting_levels(&self, factor: Factor) -> &[At<String>] {
        self.setting(factor).map_or(&[], |setting| &setting.levels)
    }

    /// Those of `[factors]`, then those of each `[[include]]`, which has the levels of `[factors]` where it names none.
    pub(super) fn read_all(tree: &Table, bed_mtu: &Option<At<u32>>, problems: &mut Problems) -> Vec<Self> {
        let main = tree.get("factors");
        let mut all = vec![Factors::read(main, bed_mtu.clone(), problems)];
        let Some(TomlValue::Table(main)) = main.map(|node| &node.value) else { return all };
        for also in tree.get("include").map_or(&[][..], |node| node.items()) {
            let TomlValue::Table(levels) = &also.value else { continue };
            for level in &levels.0 {
                let is_of_testbeds = |factor: Factor| factor.is_of_testbeds() || factor == Factor::Services;
                if level.name.parse().is_ok_and(is_of_testbeds) {
                    problems.add(Problem::at(
                        level.name_place.clone(),
                        format!("`include.{}` is not possible", level.name),
                        "its levels in [factors] are those of all cells",
                    ));
                }
            }
            let mut merged = main.clone();
            layers::merge(&mut merged, levels.clone(), LEVELS);
            let node = Located { value: TomlValue::Table(merged), place: also.place.clone() };
            all.push(Factors::read(Some(&node), bed_mtu.clone(), problems));
        }
        all
    }

    /// The levels of one factor, as printed.
    pub(super) fn levels(&self, factor: Factor) -> Vec<String> {
        fn printed<T: ToString>(levels: &[At<T>]) -> Vec<String> {
            levels.iter().map(|level| level.value.to_string()).collect()
        }
        match factor {
            Factor::Family => printed(&self.family),
            Factor::Transport => printed(&self.transport),
            Factor::SizeOf => printed(&self.size_of),
            Factor::Size => printed(&self.size),
            Factor::Replica => printed(&self.replica),
            setting => self.setting(setting).map_or_else(Vec::new, |setting| printed(&setting.levels)),
        }
    }

    /// Every combination of levels, at most `most`.
    fn cells(&self, most: usize, problems: &mut Problems) -> Vec<Cell> {
        let replicas = match self.levels(Factor::Replica) {
            none if none.is_empty() => vec![String::new()],
            replicas => replicas,
        };
        let lists =
            [self.transport.len(), self.size_of.len(), self.size.len(), self.family.len(), replicas.len()];
        let settings = self.settings.iter().map(|setting| setting.levels.len());
        let count = lists.into_iter().chain(settings).fold(1, usize::saturating_mul);
        if count > most {
            problems.add(Problem::at(
                self.place.clone().unwrap_or(Location::whole(0)),
                format!("the factors make {count} cells"),
                format!("expected at most {MOST_CELLS}"),
            ));
            return Vec::new();
        }
        let mut cells = Vec::with_capacity(count);
        for transport in &self.transport {
            for size_of in &self.size_of {
                for size in &self.size {
                    for family in &self.family {
                        let cell = Cell::new(family.value, transport.value, size_of.value, size.value);
                        cells.extend(
                            replicas.iter().map(|replica| Cell { replica: replica.clone(), ..cell.clone() }),
                        );
                    }
                }
            }
        }
        for setting in &self.settings {
            cells = cells.into_iter().flat_map(|cell| setting.spread(cell)).collect();
        }
        cells
    }
}

/// The levels of a factor in any of them, each once, as printed.
pub(super) fn levels(all: &[Factors], factor: Factor) -> Vec<String> {
    once_each(all.iter().flat_map(|factors| factors.levels(factor)))
}

/// Every combination of levels of each of them, each once.
pub(super) fn cells(all: &[Factors], problems: &mut Problems) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut known: HashSet<Cell> = HashSet::new();
    for factors in all {
        let before = cells.len();
        let more = factors.cells(MOST_CELLS - before, problems);
        cells.extend(more.into_iter().filter(|cell| known.insert(cell.clone())));
        if cells.len() == before && problems.is_empty() {
            let place = factors.place.clone().unwrap_or(Location::whole(0));
            problems.add(
                Problem::at(place, "this adds no cells", "all of them are there without it")
                    .help("name a factor with levels that [factors] does not have, or leave the table out"),
            );
        }
    }
    cells
}
