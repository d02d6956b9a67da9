//! What becomes router and client of a row: the namespaces themselves, or guests in their places.

use super::plan::Site;
use super::{Routed, lay};
use crate::bridge::{hand_over, vacate};
use crate::error::TestbedError;
use crate::host::{Guest, Place};
use crate::mechanism::translate::tayga;
use crate::mechanism::{Router, wireguard};
use crate::part::{ClientPart, Interface, Part, RouterPart};
use stacklab_model::{LinkConfig, Links, Translator};
use std::path::Path;

/// The clients' sites, and their places among the hosts.
pub(super) const CLIENTS: [(Site, usize); 2] = [(Site::Near, 0), (Site::Far, 3)];
/// The same of the routers.
const ROUTERS: [(Site, usize); 2] = [(Site::Near, 1), (Site::Far, 2)];

/// What guests in a row have in common.
pub(super) struct Seats<'a> {
    /// What the links have in common.
    pub link_config: &'a LinkConfig,
    /// What each has for itself.
    pub links: &'a Links,
    /// What translates on each router, the sender's first.
    pub translators: [Translator; 2],
    /// This program, which is the agent in them.
    pub program: &'a Path,
    /// The processors of the row's near half and of its far one; any, where there are none.
    pub processors: [Vec<usize>; 2],
}

impl Seats<'_> {
    /// The link of a site's client to its router.
    fn near(&self, site: Site) -> LinkConfig {
        match site {
            Site::Near => self.links.near.of(self.link_config),
            Site::Far => self.links.far.of(self.link_config),
        }
    }
}

impl Routed {
    /// Has the links' inner hosts be routers, on which the mechanism is built; waits until guests have done it.
    pub(super) fn set_up_routers(
        &mut self,
        guests: [Option<Box<dyn Guest>>; 2],
        seats: &Seats<'_>,
    ) -> Result<(), TestbedError> {
        let keys = wireguard::Keys::draw(self.mechanism);
        let keys = keys.map_err(|fault| fault.at(Site::Near.router()))?;
        for (number, ((site, place), guest)) in ROUTERS.into_iter().zip(&guests).enumerate() {
            let (translator, keys) = (seats.translators[number], keys[number]);
            let router =
                Router { site, mechanism: self.mechanism, mtu: seats.link_config.mtu, translator, keys };
            let Some(guest) = guest else {
                let machine = &mut self.machines[place];
                machine.inside(|| lay::route(&router))?;
                let translator = tayga::command(&router, self.folder.path());
                if let Some(mut command) = translator.map_err(|fault| fault.at(machine.node))? {
                    machine.start_beside(&mut command)?;
                }
                continue;
            };
            let (near_mtu, offloads) = (seats.near(site).mtu, seats.link_config.offloads);
            self.seat(place, guest.as_ref(), seats, Part::Router(RouterPart { router, near_mtu, offloads }))?;
            self.routers[number] = Some(guest.version());
        }
        ROUTERS.iter().try_for_each(|(_, place)| self.machines[*place].come_up())
    }

    /// Starts guests at the ends of a row that stands and does not wait until they have booted. Their interfaces have the
    /// hardware and IP addresses that the namespaces had, so the routers see no difference; gVisor takes over the namespace's
    /// own. From then on kernels at both ends have their path MTUs by routes: nobody can have a guest find them again.
    pub(super) fn seat_clients(
        &mut self,
        guests: [Option<Box<dyn Guest>>; 2],
        seats: &Seats<'_>,
    ) -> Result<(), TestbedError> {
        let (mechanism, middle_mtu, offloads) =
            (self.mechanism, seats.link_config.mtu, seats.link_config.offloads);
        for (number, ((site, place), guest)) in CLIENTS.into_iter().zip(&guests).enumerate() {
            let guest = guest.as_ref();
            if !guest.is_some_and(|guest| guest.wants_a_tap()) {
                self.machines[place].inside(|| lay::fix_path_mtus(site, mechanism, middle_mtu))?;
            }
            let Some(guest) = guest else { continue };
            let mtu = seats.near(site).mtu;
            let client = ClientPart { site, mechanism, mtu, middle_mtu, offloads };
            self.seat(place, guest.as_ref(), seats, Part::Client(client))?;
            self.clients[number] = Some(guest.version());
        }
        self.lasting = true;
        Ok(())
    }

    /// Starts a guest in a namespace, whose ends of links are handed over to it where it wants tap devices.
    fn seat(
        &mut self,
        place: usize,
        guest: &dyn Guest,
        seats: &Seats<'_>,
        part: Part,
    ) -> Result<(), TestbedError> {
        let (machine, offloads) = (&mut self.machines[place], seats.link_config.offloads);
        if guest.wants_a_tap() {
            machine.inside(|| {
                part.interfaces().into_iter().try_for_each(|Interface { link, hardware, mtu }| {
                    vacate(link, hardware)?;
                    hand_over(link, mtu, offloads)
                })
            })?;
        }
        let half = usize::from(place > 1);
        let place = Place {
            name: machine.node.name(),
            namespace: machine.pid(),
            processors: &seats.processors[half],
            offloads,
            program: seats.program,
            folder: &self.folder.for_host(machine.node.name())?,
            part,
        };
        machine.invite(guest, &place)
    }
}
