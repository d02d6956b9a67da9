//! The settings of a medium.

use stacklab_model::wifi::{AccessCategory, Edca, Radio, Role};

/// The settings of a medium. [`MediumSettings::new`] has the usual ones.
#[derive(Debug, Clone, PartialEq)]
pub struct MediumSettings {
    /// The channel.
    pub radio: Radio,
    /// EDCA parameters of the access point, by [`AccessCategory`].
    pub access_point: [Edca; 4],
    /// EDCA parameters of stations.
    pub station: [Edca; 4],
    /// Most frames in a queue, of which each node and access category has one (tail drop).
    pub queue_frames: usize,
    /// How often a frame is sent before it is given up (dot11ShortRetryLimit).
    pub attempts: u32,
    /// Signal to noise ratio of all links, dB, by which frames are lost at random. None: by collisions only.
    pub snr_db: Option<f64>,
}

impl MediumSettings {
    /// A channel with the default parameters of EDCA, queues of 150 frames, 7 attempts, and no loss.
    pub fn new(radio: Radio) -> Self {
        let of = |role| std::array::from_fn(|index| Edca::default_of(role, AccessCategory::ALL[index]));
        MediumSettings {
            radio,
            access_point: of(Role::AccessPoint),
            station: of(Role::Station),
            queue_frames: 150,
            attempts: 7,
            snr_db: None,
        }
    }

    /// The parameters of a role.
    pub(crate) fn edca(&self, role: Role) -> &[Edca; 4] {
        match role {
            Role::AccessPoint => &self.access_point,
            Role::Station => &self.station,
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        for role in Role::ALL {
            for edca in self.edca(*role) {
                edca.check(*role)?;
            }
        }
        if self.queue_frames == 0 {
            return Err("a queue of 0 frames is not possible: expected at least 1".to_owned());
        }
        if self.attempts == 0 {
            return Err("0 transmissions of a frame are not possible: expected at least 1".to_owned());
        }
        Ok(())
    }
}
