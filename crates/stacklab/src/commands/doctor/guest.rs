//! The guest in which whole testbeds run where this kernel lacks what they need.

use stacklab_explain::KERNEL;
use stacklab_guests::{GET_QEMU, QUICKEST_IMAGE, image};
use stacklab_model::System;
use stacklab_testbed::Ability;

/// The guests with images here that can be a whole testbed.
pub(super) fn find_guests() -> Vec<System> {
    let kernels = image::known().into_iter().filter(|system| matches!(system, System::Linux(_)));
    let kernels = kernels.filter(|system| image::Image::find(system).is_ok());
    kernels.chain(image::built()).collect()
}

/// Where a testbed with routers runs if this kernel lacks what it needs.
pub(super) fn describe_guest(here: &[System], has_qemu: bool) -> String {
    let full = System::OwnUml("full".to_owned());
    let known = here
        .iter()
        .find(|system| **system == full)
        .or(here.iter().find(|system| matches!(system, System::Linux(_))));
    let (name, place) = match known {
        Some(system @ System::Linux(_)) if !has_qemu => {
            (system.to_string(), format!("whose image is here; to get QEMU for it: {GET_QEMU}"))
        }
        Some(system) => (system.to_string(), "which is here".to_owned()),
        None if has_qemu => (KERNEL.to_owned(), format!("to get it: {QUICKEST_IMAGE}")),
        None => (KERNEL.to_owned(), format!("to get it: {QUICKEST_IMAGE}, and {GET_QEMU}")),
    };
    format!(
        "What is missing for routed testbeds (mechanisms, delay, loss) is in the guest {name}, {place}.\n\
         `run` and `lab up` use it where this kernel lacks a module. Jool alone needs uml-full, and flow_offload linux-6.1.\n"
    )
}

/// Why a guest can be used that the list below says cannot be a host.
pub(super) fn describe_use_of_tun(testbeds: &[Ability]) -> &'static str {
    let lacks_tun = testbeds.iter().any(|ability| ability.name == "tun" && ability.result.is_err());
    match lacks_tun {
        true => {
            "A whole testbed in a guest needs no tun device here; single hosts that are guests (below) need one.\n"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_modules_has_the_quickest_guest() {
        let [full, mine] = ["full", "mine"].map(|name| System::OwnUml(name.to_owned()));
        let linux = System::Linux("6.1".to_owned());
        let get = "guest linux-6.1, to get it: stacklab image get linux-6.1 (under a minute)";
        assert!(describe_guest(&[], true).contains(&format!("{get}.\n")));
        assert!(describe_guest(std::slice::from_ref(&full), true).contains("uml-full, which is here."));
        assert!(describe_guest(&[linux, full], true).contains("uml-full, which is here."));
        assert!(describe_guest(&[mine], true).contains(get));
    }

    #[test]
    fn qemu_is_advised_only_where_it_is_missing() {
        let linux = [System::Linux("6.1".to_owned())];
        assert!(!describe_guest(&[], true).contains("apt-get"));
        assert!(describe_guest(&[], false).contains(&format!("linux-6.1 (under a minute), and {GET_QEMU}.")));
        assert!(describe_guest(&linux, true).contains("linux-6.1, which is here."));
        let image_alone = describe_guest(&linux, false);
        assert!(image_alone.contains(GET_QEMU) && !image_alone.contains("image get"), "{image_alone}");
    }

    #[test]
    fn use_of_tun_is_said_where_it_is_missing() {
        let mut tun =
            [Ability { name: "tun", what_for: "translators", result: Ok(()), remedy: "modprobe tun" }];
        assert_eq!(describe_use_of_tun(&tun), "");
        tun[0].result = Err("denied".to_owned());
        assert!(describe_use_of_tun(&tun).contains("needs no tun device"));
    }
}
