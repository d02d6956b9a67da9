//! The precision of a mean.

use crate::statistics::moments::Moments;

/// Half the width of the 95 % t interval of the mean of `n` runs with a standard deviation; `None` below two runs.
pub fn half_width_of(sd: f64, n: usize) -> Option<f64> {
    (n >= 2).then(|| Moments { n, mean: 0.0, sd }.interval(0.95).half_width())
}

#[cfg(test)]
mod tests {
    use super::half_width_of;

    #[test]
    fn it_is_students() {
        // 2.776445 * 1.5811388 / sqrt(5), and 2.022691 / sqrt(40).
        assert!((half_width_of(1.581_138_8, 5).unwrap() - 1.963_243_2).abs() < 1e-6);
        assert!((half_width_of(1.0, 40).unwrap() - 0.319_816_4).abs() < 1e-6);
        assert_eq!(half_width_of(1.0, 1), None);
    }
}
