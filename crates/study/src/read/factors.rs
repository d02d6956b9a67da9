//! The varied factors, and the resulting cells.

use crate::diagnostics::{Location, Problem, Problems};
use crate::language::leaf;
use crate::language::table::LEVELS;
use crate::parse::layers;
use crate::parse::tree::{Located, Table, TomlValue};
use crate::read::{At, Node, whole};
use stacklab_model::{Cell, Factor, Family, Mechanism, SizeOf, Systems, Transport, once_each};
use std::collections::HashSet;

/// Maximum number of cells of a study: more could not be measured in a lifetime, and indicate a typing error.
const MAX_CELLS: usize = 10_000;

/// The levels of every factor. A factor has no levels if they are all wrong or missing.
pub(super) struct Factors {
    pub place: Location,
    pub family: Vec<At<Family>>,
    pub transport: Vec<At<Transport>>,
    pub size_of: Vec<At<SizeOf>>,
    pub size: Vec<At<u32>>,
    pub replica: Vec<At<String>>,
    pub settings: Vec<Setting>,
    /// The factors that the study names, those whose levels are wrong included.
    pub named: Vec<Factor>,
    /// The minimum MTU of the study's links; `None` if it is itself wrong.
    pub least_mtu: Option<At<u32>>,
}

impl Factors {
    /// Reads them; `bed_mtu` is the MTU if the study does not vary it.
    fn read(node: Node, bed_mtu: &Option<At<u32>>, problems: &Problems) -> Self {
        let mtus = node.get("mtu").list(whole, problems).into_iter();
        Factors {
            place: node.place().cloned().unwrap_or(Location::whole(0)),
            family: node.get("family").list(leaf::name, problems),
            transport: node.get("transport").list(leaf::name, problems),
            size_of: node.get("size_of").list(leaf::name, problems),
            size: node.get("size").list(whole, problems),
            replica: node.get("replica").list(leaf::text, problems),
            settings: Setting::read(node, problems),
            named: Factor::ALL.iter().copied().filter(|factor| node.get(factor.name()).0.is_some()).collect(),
            least_mtu: mtus.min_by_key(|mtu| mtu.value).or(bed_mtu.clone()),
        }
    }

    pub(super) fn setting(&self, factor: Factor) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.factor == factor)
    }

    /// The levels of a setting; none if the study does not have it.
    pub(super) fn setting_levels(&self, factor: Factor) -> &[At<String>] {
        self.setting(factor).map_or(&[], |setting| &setting.levels)
    }

    /// The largest level of a setting that counts, if that is several.
    pub(super) fn find_several(&self, factor: Factor) -> Option<At<u32>> {
        let most = self.setting(factor)?.numbers().max_by_key(|level| level.value)?;
        Some(most).filter(|level| level.value > 1)
    }

    /// The sizes whose datagrams do not fit a packet of the link, with the bytes of the largest packet and the MTU.
    pub(super) fn find_large_datagrams(&self) -> Vec<(&At<u32>, u32, u32)> {
        let Some(mtu) = self.least_mtu.as_ref().map(|mtu| mtu.value) else { return Vec::new() };
        if !self.transport.iter().any(|transport| transport.value == Transport::Udp) {
            return Vec::new();
        }
        let mut fragmented = Vec::new();
        for size in &self.size {
            let mut packet = 0;
            for family in &self.family {
                for size_of in &self.size_of {
                    let cell = Cell::new(family.value, Transport::Udp, size_of.value, size.value);
                    let headers = family.value.header_bytes() + Transport::Udp.header_bytes();
                    packet = packet.max(cell.payload_bytes() + headers);
                }
            }
            if packet > mtu {
                fragmented.push((size, packet, mtu));
            }
        }
        fragmented
    }

    /// Those of `[factors]`, then those of each `[[include]]`, which has the levels of `[factors]` where it names none.
    pub(super) fn read_all(tree: &Table, problems: &mut Problems) -> Vec<Self> {
        let bed_mtu = Node(tree.get("testbed")).get("mtu").at(whole, problems);
        let main = tree.get("factors");
        let mut all = vec![Factors::read(Node(main), &bed_mtu, problems)];
        let Some(main) = main.and_then(Located::table) else { return all };
        for also in tree.get("include").map_or(&[][..], Located::items) {
            let Some(levels) = also.table() else { continue };
            for level in &levels.0 {
                let Ok(factor) = level.name.parse::<Factor>() else { continue };
                let is_of_hosts = factor.is_of_testbeds() && !factor.is_of_tables();
                if is_of_hosts || factor == Factor::Services {
                    let title = format!("`include.{}` is not possible", level.name);
                    let label = "its levels in [factors] are those of all cells";
                    problems.add(Problem::at(&level.name_place, title, label));
                }
            }
            let mut merged = main.clone();
            layers::merge(&mut merged, levels.clone(), LEVELS);
            let node = Located { value: TomlValue::Table(merged), place: also.place.clone() };
            all.push(Factors::read(Node(Some(&node)), &bed_mtu, problems));
        }
        all
    }

    pub(super) fn levels(&self, factor: Factor) -> Vec<String> {
        match factor {
            Factor::Family => print_levels(&self.family),
            Factor::Transport => print_levels(&self.transport),
            Factor::SizeOf => print_levels(&self.size_of),
            Factor::Size => print_levels(&self.size),
            Factor::Replica => print_levels(&self.replica),
            setting => print_levels(self.setting_levels(setting)),
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
            let expected = format!("expected at most {MAX_CELLS}");
            problems.add(Problem::at(&self.place, format!("the factors make {count} cells"), expected));
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

fn print_levels<T: ToString>(levels: &[At<T>]) -> Vec<String> {
    levels.iter().map(|level| level.value.to_string()).collect()
}

pub(super) fn levels(all: &[Factors], factor: Factor) -> Vec<String> {
    once_each(all.iter().flat_map(|factors| factors.levels(factor)))
}

pub(super) fn cells(all: &[Factors], problems: &mut Problems) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut known: HashSet<Cell> = HashSet::new();
    for factors in all {
        let before = cells.len();
        let more = factors.cells(MAX_CELLS - before, problems);
        cells.extend(more.into_iter().filter(|cell| known.insert(cell.clone())));
        if cells.len() == before && problems.is_empty() {
            problems.add(
                Problem::at(&factors.place, "this adds no cells", "all of them are there without it")
                    .help("name a factor with levels that [factors] does not have, or leave the table out"),
            );
        }
    }
    cells
}

/// A factor of [`Factor::is_setting`] that the study has, with its levels as written.
pub(super) struct Setting {
    pub factor: Factor,
    pub levels: Vec<At<String>>,
}

impl Setting {
    fn read(factors: Node, problems: &Problems) -> Vec<Self> {
        let mut settings = Vec::new();
        for factor in Factor::ALL.iter().copied().filter(|factor| factor.is_setting()) {
            let read = match factor {
                Factor::Os | Factor::RouterOs => leaf::systems,
                Factor::Services => leaf::services,
                _ => leaf::level,
            };
            let levels = factors.get(factor.name()).list(read, problems);
            if !levels.is_empty() {
                settings.push(Setting { factor, levels });
            }
        }
        settings
    }

    /// Whether it has the same value in every cell that can have it.
    pub(super) fn is_constant(&self) -> bool {
        self.levels.len() == 1
    }

    /// The cells that result from applying it to a cell. If a fixed setting does not apply, the cell stays unchanged.
    fn spread(&self, cell: Cell) -> Vec<Cell> {
        if self.is_constant() && !meets_requirement(&cell, self.factor, &self.levels[0].value) {
            return vec![cell];
        }
        let mut cells = Vec::new();
        for At { value: level, .. } in &self.levels {
            // A mechanism and a kind of socket have cells of the families that they carry only.
            let is_carried = match self.factor {
                Factor::Mechanism => {
                    level.parse().is_ok_and(|mechanism: Mechanism| mechanism.carries(cell.family))
                }
                Factor::Socket => meets_requirement(&cell, self.factor, level),
                _ => true,
            };
            let mut varied = cell.clone();
            if is_carried && varied.set(self.factor, level).is_ok() {
                cells.push(varied);
            }
        }
        cells
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = At<u32>> {
        self.levels
            .iter()
            .filter_map(|At { value, place }| Some(At { value: value.parse().ok()?, place: place.clone() }))
    }
}

/// Whether a level of systems has one that is not a namespace.
pub(super) fn has_guest(level: &At<String>) -> bool {
    level.value.parse().is_ok_and(|systems: Systems| systems != Systems::NAMESPACES)
}

fn meets_requirement(cell: &Cell, factor: Factor, level: &str) -> bool {
    find_requirement(factor, level).is_none_or(|(other, needed)| cell.level(other) == needed)
}

/// What a factor's level requires of a cell: the level of another factor.
pub(super) fn find_requirement(factor: Factor, level: &str) -> Option<(Factor, &'static str)> {
    match (factor, level) {
        (Factor::Io, "gso") => Some((Factor::Transport, Transport::Udp.name())),
        (Factor::Io, "zerocopy")
        | (Factor::Mss | Factor::Nodelay | Factor::CongestionControl | Factor::KernelPacing, _) => {
            Some((Factor::Transport, Transport::Tcp.name()))
        }
        (Factor::Socket, "ipv4-mapped") => Some((Factor::Family, Family::Ipv4.name())),
        (Factor::FlowLabel, _) => Some((Factor::Family, Family::Ipv6.name())),
        _ => None,
    }
}
