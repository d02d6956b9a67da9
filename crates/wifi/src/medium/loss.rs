//! Frames lost to noise.

use crate::medium::{FrameKind, Receiver};
use stacklab_model::wifi::{LegacyRate, Radio};

/// The probability that a frame of `bytes` has an error at a signal to noise ratio: hard decisions on a channel with
/// white noise, and the union bound of the convolutional code (G. Pei and T. Henderson, Validation of OFDM error rate
/// model in ns-3, 2010). The streams of a frame have the same ratio and do not disturb each other.
pub(crate) fn frame_error(
    radio: &Radio,
    receiver: Receiver,
    kind: FrameKind,
    bytes: u32,
    snr_db: f64,
) -> f64 {
    let group_rate = radio.settings().group_rate;
    let (bits, code_rate) = match (receiver, kind) {
        (Receiver::Group, _) | (_, FrameKind::Basic | FrameKind::BlockAckRequest) => legacy(group_rate),
        _ => {
            let (bits, numerator, denominator) = radio.mcs().modulation();
            (bits, (numerator, denominator))
        }
    };
    let bit_error = find_decoded_error_rate(find_raw_error_rate(bits, 10f64.powf(snr_db / 10.0)), code_rate);
    1.0 - (1.0 - bit_error).powf(8.0 * f64::from(bytes))
}

/// Coded bits of a subcarrier and symbol, and the code rate. The rates of 802.11b are more robust than any of OFDM and
/// count as the most robust of these.
fn legacy(rate: LegacyRate) -> (u64, (u64, u64)) {
    match rate.kbit_per_second() {
        _ if rate.is_dsss() => (1, (1, 2)),
        6000 => (1, (1, 2)),
        9000 => (1, (3, 4)),
        12_000 => (2, (1, 2)),
        18_000 => (2, (3, 4)),
        24_000 => (4, (1, 2)),
        36_000 => (4, (3, 4)),
        48_000 => (6, (2, 3)),
        _ => (6, (3, 4)),
    }
}

/// The bit error rate of BPSK (1 bit), QPSK (2), 16-QAM (4) and 64-QAM (6) without a code.
fn find_raw_error_rate(bits: u64, snr: f64) -> f64 {
    if bits == 1 {
        return 0.5 * erfc(snr.sqrt());
    }
    let points = f64::from(1u32 << bits);
    2.0 / bits as f64 * (1.0 - 1.0 / points.sqrt()) * erfc((1.5 * snr / (points - 1.0)).sqrt())
}

/// The bit error rate behind the decoder: the first terms of the code's weight spectrum (D. Haccoun and G. Begin,
/// High-rate punctured convolutional codes, IEEE Trans. Commun. 37(11), 1989).
fn find_decoded_error_rate(bit_error: f64, code_rate: (u64, u64)) -> f64 {
    // Free distance, step of the distance, and the weights of information bits.
    let (distance, step, weights): (i32, i32, &[f64]) = match code_rate {
        (1, 2) => (10, 2, &[36.0, 211.0, 1404.0, 11_633.0]),
        (2, 3) => (6, 1, &[3.0, 70.0, 285.0, 1276.0, 6160.0]),
        (3, 4) => (5, 1, &[42.0, 201.0, 1492.0, 10_469.0, 62_935.0]),
        _ => (4, 1, &[92.0, 528.0, 8694.0, 79_453.0, 792_114.0]),
    };
    let chernoff = (4.0 * bit_error * (1.0 - bit_error)).sqrt();
    let terms = weights.iter().zip(0..).map(|(weight, term)| weight * chernoff.powi(distance + step * term));
    (terms.sum::<f64>() / (2.0 * code_rate.0 as f64)).min(1.0)
}

/// The complementary error function of a number from zero on, to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let factors = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    factors.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t) * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::NodeId;
    use stacklab_model::wifi::RadioSettings;

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        for (x, expected) in [(0.0, 1.0), (0.5, 0.479_500_1), (1.0, 0.157_299_2), (2.0, 0.004_677_7)] {
            assert!((erfc(x) - expected).abs() < 2e-7, "{x}: {}", erfc(x));
        }
    }

    /// The ratio at which a tenth of the frames of 1500 bytes is lost.
    fn find_needed_snr(mcs: u8) -> f64 {
        let radio = Radio::new(RadioSettings { mcs, ..RadioSettings::default() }).unwrap();
        let to = Receiver::Node(NodeId(1));
        let mut errors = Vec::new();
        for tenths in 0..400 {
            errors.push(frame_error(&radio, to, FrameKind::Single, 1500, f64::from(tenths) / 10.0));
        }
        // More signal never loses more.
        assert!(errors.windows(2).all(|pair| pair[0] >= pair[1]), "MCS {mcs}");
        errors.iter().position(|error| *error < 0.1).unwrap() as f64 / 10.0
    }

    #[test]
    fn a_higher_mcs_needs_a_better_signal() {
        let all: Vec<f64> = (0..8).map(find_needed_snr).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        // 3 dB from BPSK to QPSK at one code rate, and no stream more or less.
        assert!((all[1] - all[0] - 3.0).abs() < 0.11, "{all:?}");
        assert_eq!(find_needed_snr(15), all[7]);
    }

    fn find_error(group_rate: LegacyRate, receiver: Receiver, kind: FrameKind) -> f64 {
        let radio = Radio::new(RadioSettings { group_rate, ..RadioSettings::default() }).unwrap();
        frame_error(&radio, receiver, kind, 1500, 8.0)
    }

    #[test]
    fn group_frames_depend_on_their_own_rate() {
        let to = Receiver::Node(NodeId(1));
        assert!(find_error(LegacyRate::Ofdm6, to, FrameKind::Single) > 0.999);
        assert!(find_error(LegacyRate::Ofdm6, Receiver::Group, FrameKind::Single) < 1e-6);
        assert!(find_error(LegacyRate::Ofdm6, to, FrameKind::Basic) < 1e-6);
        assert!(find_error(LegacyRate::Ofdm54, Receiver::Group, FrameKind::Single) > 0.999);
    }
}
