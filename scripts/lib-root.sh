# shellcheck shell=bash
# Roots of Debian that have nothing, and commands in them. Needs scripts/lib.sh and mmdebstrap, as root.

# debian_sources SUITE: the lines of apt's sources for a release, with updates and security, from the archives that apt
# of this machine uses. Nothing where it uses none of Debian's: mmdebstrap then takes what it knows.
debian_sources() {
    have apt-get || return 0
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
        awk -v suite="$1" '$3 == "main" && $4 == "Debian" && match($2, /-(updates|security)$|$/) {
            print "deb", $1, suite substr($2, RSTART), "main"
        }'
}

# make_root FOLDER SUITE PACKAGE..: a minimal Debian with these packages, two homes that only their owners may read, and what a
# connected machine has: name servers, certificates of its own network, the settings of its package managers.
make_root() {
    local root=$1 suite=$2 packages sources
    shift 2
    packages=$(IFS=,; echo "$*")
    sources=$(mktemp)
    debian_sources "$suite" >"$sources"
    if [ -s "$sources" ]; then
        mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" "$root" "$sources"
    else
        mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" "$root"
    fi || { rm -f "$sources"; die "mmdebstrap cannot make a root of $suite"; }
    rm -f "$sources"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    local setting
    # How apt reaches an archive (proxies, time limits, dates), and nothing of what it does with packages.
    ! have apt-config || apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/90machine"
    for setting in /etc/pip.conf /usr/local/share/ca-certificates /root/.npmrc /root/.config/pip /root/.config/go/env; do
        [ ! -e "$setting" ] || { mkdir -p "$root${setting%/*}" && cp -aL "$setting" "$root${setting%/*}/"; }
    done
    # A root that is thrown away needs no safe writes; with them, installing takes minutes on a slow disk.
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/stacklab-unsafe-io"
    chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 newcomer
    chmod 700 "$root/root" "$root/home/newcomer"
    if [ -d "$root/etc/sudoers.d" ]; then
        echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/newcomer"
    fi
}

# home_in_root USER
home_in_root() { [ "$1" = root ] && echo /root || echo "/home/$1"; }

# clone_into_root FOLDER USER: HEAD of this repository, as ~/stacklab of that user.
clone_into_root() {
    local clone
    clone=$1$(home_in_root "$2")/stacklab
    git clone --quiet --no-hardlinks . "$clone"
    chown -R --reference="${clone%/*}" "$clone"
}

# run_in_root FOLDER USER COMMAND..: in ~/stacklab, with the machine's network and devices, and its own processes, /tmp and /run.
# Of the environment it sees what says how the registries of packages are reached, and CI. Not by chroot alone: processes
# in a chroot may not create user namespaces.
run_in_root() {
    local root=$1 user=$2 as=() settings=()
    shift 2
    [ "$user" = root ] || as=(setpriv --reuid "$user" --regid "$user" --init-groups)
    mapfile -t settings < <(env | grep -Ei '^(CI|CARGO_INCREMENTAL|CARGO_PROFILE_[A-Z_]*|[a-z]+_proxy|[A-Z_]*(CERT|CERTS|CERT_FILE|CERT_DIR|CA_BUNDLE|CAINFO)|PIP_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)|npm_config_[a-z_]+|GO(PROXY|NOSUMDB|SUMDB|NOPROXY|PRIVATE|FLAGS)|CARGO_(HTTP|NET|REGISTRY|REGISTRIES)_[A-Z_]*|RUSTUP_DIST_SERVER|DEBIAN_MIRROR|STACKLAB_ADVISORIES)=' || true)
    [ -n "${GOPROXY:-}" ] || ! have go || settings+=("GOPROXY=$(go env GOPROXY)")
    # shellcheck disable=SC2016
    unshare --fork --kill-child --pid --mount --ipc --uts sh -ec '
        root=$1
        shift
        mount --bind "$root" "$root"
        cd "$root"
        mount -t proc proc proc
        mount --rbind /sys sys
        mount --rbind /dev dev
        mount -t tmpfs -o mode=1777 tmpfs tmp
        mount -t tmpfs tmpfs run
        pivot_root . mnt
        exec chroot . sh -c "umount -l /mnt; exec \"\$@\"" sh "$@"' sh "$root" \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb "${settings[@]}" \
        "HOME=$(home_in_root "$user")" "USER=$user" "${as[@]}" sh -c 'cd ~/stacklab && exec "$@"' sh "$@" </dev/null
}

# packages_in_root FOLDER: the names of what is installed.
packages_in_root() { dpkg-query --admindir="$1/var/lib/dpkg" -W -f '${Package}\n' | sort; }
