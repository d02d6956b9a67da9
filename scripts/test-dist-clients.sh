# shellcheck shell=bash
# The part of scripts/test-dist that installs by pip, pipx, npm, rpm, makepkg, install.sh, podman and docker: in a
# root of Debian that has these clients and nothing of this machine, from a server of the test's own.

clients=(ca-certificates curl docker.io file libarchive-tools makepkg npm pacman-package-manager pipx podman python3-pip rpm runc uidmap)
server=http://127.0.0.1:8080
person=(setpriv --reuid 1000 --regid 1000 --init-groups env HOME=/home/person USER=person PATH=/home/person/.local/bin:/usr/local/bin:/usr/bin:/bin)
as_root=(env HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)

# make_client_root SUITE: sets `root`. It has the packages in /srv, an ordinary user, and what clients make at their first use.
make_client_root() {
    root=$work/$1-clients
    make_minimal_root "$1" "$root" "${clients[@]}"
    cp -r "$dist" "$root/srv/dist"
    cp scripts/test-dist-server "$root/srv/serve"
    inside "$root" useradd --create-home --uid 1000 --shell /bin/bash person
    inside "$root" rpm --initdb
    # For pacman, which looks for free space.
    ln -sfn /proc/self/mounts "$root/etc/mtab"
    inside "$root" pacman --query || true
}

# in_root COMMAND..: as root in the root, with the server. by_person: the same as the ordinary user.
in_root() { inside "$root" /srv/serve /srv/dist "${as_root[@]}" "$@"; }
by_person() { inside "$root" /srv/serve /srv/dist "${person[@]}" "$@"; }

# answers WHO PROGRAM..: whether the quickstart has an answer.
answers() { "$1" "${@:2}" "${quick[@]}" /tmp/a.stacklab; }

# try_before COMMAND..: for the folders that a client makes at its first use and keeps, whatever comes of it.
try_before() {
    start_signs
    "$@" >/dev/null 2>&1 || true
    stop_signs
}

# begin_client: notes the files. end_client WHAT: whether they are the same again.
begin_client() { start_signs && files "$root" >"$work/before" && stop_signs; }
end_client() { check "$1 leaves nothing" same "$work/before" <(files "$root"); }
# The same but for empty folders: pip and npm leave some, and pip removes some that were there.
end_untidy_client() { check "$1 leaves no file" same <(grep -v ' d ' "$work/before") <(files "$root" | grep -v ' d '); }

# has_program PATH: whether the root has the program of the archive there.
has_program() { cmp "$root/$1" "$work/x86_64/stacklab"; }

# has_documents FOLDER: whether manual and completions are below it, where the shells look.
has_documents() {
    local found
    found=$(cd "$root/$1" && find . -type f -o -type l)
    for part in share/man/man1/stacklab.1 bash-completion/completions/stacklab _stacklab stacklab.fish; do
        grep -qF "$part" <<<"$found" || { echo "$1 lacks $part"; return 1; }
    done
}

try_pip() {
    begin_client
    check 'pip installs the wheel from an index' in_root pip install --quiet --no-cache-dir --root-user-action=ignore --break-system-packages --index-url $server/simple stacklab
    check 'pip: the program is that of the archive' has_program usr/local/bin/stacklab
    check 'pip: manual and completions' has_documents usr/local
    check 'pip: the licences are there' compgen -G "$root/usr/local/lib/python3*/dist-packages/stacklab-*.dist-info/licenses/THIRD-PARTY.txt"
    check 'pip: the quickstart answers root' answers in_root stacklab
    check 'pip: the quickstart answers a user' answers by_person stacklab
    check 'pip removes it' in_root pip uninstall --quiet --yes --root-user-action=ignore --break-system-packages stacklab
    end_untidy_client pip
}

try_pipx() {
    try_before by_person pipx install --pip-args=--no-cache-dir --index-url $server/simple stacklab
    try_before by_person pipx uninstall stacklab
    begin_client
    check 'pipx installs the wheel' by_person pipx install --pip-args=--no-cache-dir --index-url $server/simple stacklab
    check 'pipx: the quickstart answers a user' answers by_person stacklab
    check 'pipx removes it' by_person pipx uninstall stacklab
    end_client pipx
    check 'pipx run starts it' says "stacklab $version" by_person pipx run --pip-args=--no-cache-dir --index-url $server/simple stacklab --version
}

try_npm() {
    local npm=(npm --registry "$server/npm/" --cache /tmp/npm --no-audit --no-fund --no-update-notifier)
    begin_client
    check 'npm installs the package from a registry' in_root "${npm[@]}" install --global stacklab
    check 'npm: the program is that of the archive' has_program usr/local/lib/node_modules/stacklab/node_modules/@stacklab/linux-x64/stacklab
    check 'npm takes one program, for this machine' same <(ls "$root/usr/local/lib/node_modules/stacklab/node_modules/@stacklab") <(echo linux-x64)
    check 'npm: the manual is there' test -e "$root/usr/local/share/man/man1/stacklab.1"
    check 'npm: the quickstart answers root' answers in_root stacklab
    check 'npm: the quickstart answers a user' answers by_person stacklab
    check 'npm: the exit code is the program'\''s' in_root sh -c 'stacklab no-such-command; [ $? -eq 2 ]'
    check 'npm removes it' in_root "${npm[@]}" uninstall --global stacklab
    end_untidy_client npm
    check 'npm installs the files of a release without a network' in_root "${npm[@]}" install --global --offline /srv/dist/stacklab-{linux-x64-,}"$version".tgz
    check 'npm: that program answers' says "stacklab $version" in_root stacklab --version
    check 'npm removes both' in_root "${npm[@]}" uninstall --global stacklab @stacklab/linux-x64
    end_untidy_client 'npm, from files,'
    check 'npx starts it' says "stacklab $version" by_person npx --yes --registry "$server/npm/" --cache /tmp/npm stacklab --version
}

# Debian's rpm has a database of its own, and would rather have dpkg install.
try_rpm() {
    local package=stacklab-$version-1.x86_64.rpm
    begin_client
    check 'rpm needs a shell and nothing else' same <(in_root rpm -qp --requires "/srv/dist/$package" | grep -v '^rpmlib(' | sort -u) <(echo /bin/sh)
    check 'rpm installs the RPM' in_root rpm --install --force-debian --nodeps "/srv/dist/$package"
    check 'rpm: the program is that of the archive' has_program usr/bin/stacklab
    check 'rpm: manual and completions' has_documents usr
    check 'rpm: the quickstart answers root' answers in_root stacklab
    check 'rpm: the quickstart answers a user' answers by_person stacklab
    check 'rpm verifies its files' in_root rpm --verify --nodeps stacklab
    check 'rpm removes it' in_root rpm --erase --force-debian stacklab
    end_client rpm
}

try_arch() {
    local build='mkdir /tmp/build && cd /tmp/build && cp /srv/dist/PKGBUILD /srv/dist/stacklab.install /srv/dist/stacklab-*-x86_64-linux.tar.gz .'
    begin_client
    check 'makepkg builds the package, pacman installs it' in_root sh -ec "
        ${person[*]} sh -ec '$build && makepkg --nodeps PKGDEST=/tmp/build'
        pacman --upgrade --noconfirm /tmp/build/stacklab-*.pkg.tar.*"
    check 'pacman: the program is that of the archive' has_program usr/bin/stacklab
    check 'pacman: manual and completions' has_documents usr
    check 'pacman: the quickstart answers root' answers in_root stacklab
    check 'pacman: the quickstart answers a user' answers by_person stacklab
    check 'pacman removes it' in_root pacman --remove --nosave --noconfirm stacklab
    end_client pacman
    check 'makepkg refuses another archive' in_root sh -c "! ${person[*]} sh -ec '$build && echo >>stacklab-$version-x86_64-linux.tar.gz && makepkg --nodeps'"
}

try_script() {
    local base=$server/releases/download/v$version
    begin_client
    check 'install.sh installs for all' in_root sh /srv/dist/install.sh --base "$base"
    check 'install.sh: the program is that of the archive' has_program usr/local/bin/stacklab
    check 'install.sh: manual and completions' has_documents usr/local
    check 'install.sh: the quickstart answers root' answers in_root stacklab
    check 'install.sh: the quickstart answers a user' answers by_person stacklab
    check 'install.sh installs again' in_root sh /srv/dist/install.sh --base "$base"
    check 'install.sh removes it' in_root sh /srv/dist/install.sh --uninstall
    end_client install.sh
    check 'install.sh installs for a user' by_person sh /srv/dist/install.sh --base file:///srv/dist
    check 'install.sh: the quickstart answers him' answers by_person stacklab
    check 'install.sh removes his' by_person sh /srv/dist/install.sh --uninstall
    end_client 'install.sh, as a user,'
    check 'install.sh refuses a wrong checksum' says 'nothing was installed' in_root sh -c "
        cp -r /srv/dist /tmp/wrong && echo >>/tmp/wrong/stacklab-$version-x86_64-linux.tar.gz && sh /srv/dist/install.sh --base file:///tmp/wrong"
    end_client 'install.sh, which refused,'
}

# Options for a machine without systemd, and without a network to configure: none of them grants a container anything.
podman=(podman --cgroup-manager=cgroupfs --runtime=runc --storage-driver=vfs)
container=(--rm --network=none --ulimit nofile=1024:1024 --ulimit nproc=4000:4000)

# in_podman WHO [OPTION..] -- ARGUMENT..: loads the image and runs stacklab in it, as root (in_root) or rootless (by_person).
in_podman() {
    local who=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    # shellcheck disable=SC2016
    "$who" sh -ec 'image=$1 && shift && podman=$1 && shift && $podman load --quiet --input "$image" && exec $podman "$@"' sh \
        "/srv/dist/stacklab-$version-image.tar" "${podman[*]}" run "${container[@]}" "${options[@]}" "stacklab:$version" "${@:2}"
}
remove_from_podman() { "$1" sh -ec "${podman[*]} rmi stacklab:$version && [ -z \"\$(${podman[*]} images --all --quiet)\" ] && [ -z \"\$(${podman[*]} volume ls --quiet)\" ]"; }

# keeps_record WHO: in a folder of his.
keeps_record() {
    local home=/home/person
    [ "$1" != in_root ] || home=/root
    in_podman "$1" --volume "$home:/work" -- "${quick[@]}" kept.stacklab && rm "$root$home/kept.stacklab"
}

try_podman() {
    for who in in_root by_person; do
        try_before in_podman $who -- --version
        try_before remove_from_podman $who
        begin_client
        check "podman, $who: loads the image, starts the program" says "stacklab $version" in_podman $who -- --version
        check "podman, $who: the quickstart answers without options" in_podman $who -- run --scale quick
        check "podman, $who: the record is in the folder that /work is" keeps_record $who
        check "podman, $who: removes the image" remove_from_podman $who
        end_client "podman, $who,"
    done
}

# in_docker COMMAND..: with a daemon that keeps nothing, and configures no network.
in_docker() {
    # shellcheck disable=SC2016
    in_root sh -ec '
        mkdir -p /tmp/docker
        mount -t tmpfs tmpfs /run
        ulimit -n 1024
        dockerd --data-root=/tmp/docker --iptables=false --ip6tables=false --bridge=none --storage-driver=vfs >/tmp/dockerd 2>&1 &
        for _ in $(seq 100); do docker info >/dev/null 2>&1 && break || sleep 0.2; done
        docker load --quiet --input "$1" || { cat /tmp/dockerd; exit 1; }
        shift
        "$@"' sh "/srv/dist/stacklab-$version-image.tar" "$@"
}

try_docker() {
    check 'docker loads the image and starts the program' says "stacklab $version" in_docker docker run "${container[@]}" "stacklab:$version" --version
    # Its filter of system calls forbids user namespaces, in which stacklab makes its testbed.
    check 'docker: the quickstart answers with one option' in_docker docker run "${container[@]}" --security-opt seccomp=unconfined "stacklab:$version" run --scale quick
    check 'docker has the image for aarch64' says arm64 in_docker docker image inspect --format '{{.Architecture}}' "stacklab:$version-arm64"
    check 'docker removes both' in_docker sh -c "docker rmi stacklab:$version stacklab:$version-arm64 && [ -z \"\$(docker images --all --quiet)\" ]"
}

# in_client_root SUITE: every client, one after the other.
in_client_root() {
    make_client_root "$1"
    for client in pip pipx npm rpm arch script podman docker; do "try_$client"; done
    with_signs rm -rf "$root"
}
