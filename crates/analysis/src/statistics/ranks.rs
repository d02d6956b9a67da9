//! Ranks; equal figures share their rank.

/// The rank of each figure, from 1; equal figures have the mean of the ranks that they occupy.
pub fn midranks(figures: &[f64]) -> Vec<f64> {
    doubled(figures).into_iter().map(|rank| rank as f64 / 2.0).collect()
}

/// Twice the midranks: integers, as exact distributions need.
pub(crate) fn doubled(figures: &[f64]) -> Vec<usize> {
    let mut ranks = vec![0; figures.len()];
    let mut before = 0;
    for tie in ties(figures) {
        for place in &tie {
            // Ranks before + 1 to before + tie.len(), their mean doubled.
            ranks[*place] = 2 * before + tie.len() + 1;
        }
        before += tie.len();
    }
    ranks
}

/// The sum of t^3 - t over ties of t figures each, which shrinks the variance of rank statistics.
pub(crate) fn tie_term(figures: &[f64]) -> f64 {
    ties(figures).iter().map(|tie| tie.len() as f64).map(|t| t * t * t - t).sum()
}

/// Places of the figures in ascending order, equal ones together.
pub(crate) fn ties(figures: &[f64]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by(|a, b| figures[*a].total_cmp(&figures[*b]));
    order.chunk_by(|a, b| figures[*a] == figures[*b]).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_figures_share_their_ranks() {
        assert_eq!(midranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
        assert_eq!(midranks(&[0.0, -0.0]), [1.5, 1.5]);
        assert_eq!(tie_term(&[3.0, 1.0, 3.0, 2.0, 3.0]), 24.0);
    }
}
