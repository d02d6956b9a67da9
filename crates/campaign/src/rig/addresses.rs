//! Addresses of interfaces, as the command `ip` lists them.

use std::net::IpAddr;

/// The interface and address of each line of `ip -o addr`: `2: eth0    inet 192.0.2.7/24 brd .. scope global eth0`.
pub fn read_addresses(listed: &str) -> Vec<(&str, IpAddr)> {
    listed.lines().filter_map(read_line).collect()
}

fn read_line(line: &str) -> Option<(&str, IpAddr)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let place = words.iter().position(|word| word.starts_with("inet"))?;
    let address = words.get(place + 1)?.split('/').next()?.parse().ok()?;
    Some((words[1], address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_their_order() {
        let listed = "2: e    inet 192.0.2.7/24 brd 192.0.2.255 scope global e\\ valid\n\
                      2: e    inet 192.0.2.8/24 scope global secondary e\\\n\
                      2: e    inet6 2001:db8::7/64 scope global \\\n";
        let [first, second, third] =
            ["192.0.2.7", "192.0.2.8", "2001:db8::7"].map(|text| text.parse().unwrap());
        assert_eq!(read_addresses(listed), [("e", first), ("e", second), ("e", third)]);
    }
}
