//! Programs of a study's own: a run starts a server and a client in the hosts of a testbed, and what they cost is read
//! from outside.

mod drive;
mod rate;

use crate::CampaignError;
use crate::foreign;
use crate::rig::{Rig, RigNetwork};
use crate::trial::ProgramFigures;
pub use drive::Emulators;
use drive::{Driven, Observed, drive};
use stacklab_model::{
    Cell, Counters, CpuScope, CpuSource, CpuTime, Drops, Ends, HostReport, Length, Metric, Probe,
    ProgramArguments, ProgramSpec, Role, RunStatus, ToolReport, TrialSpec, Value,
};
use stacklab_study::Study;
use stacklab_testbed::{ChildCpu, Host};
use stacklab_traffic::foreign::now_ns;
use stacklab_traffic::host::now_unix_ns;
use stacklab_trial::validate::Limits;
use stacklab_trial::{Collected, Figures, Path, validate};
use std::collections::BTreeMap;

/// Runs a program on a rig that is prepared, and gives what the kernels counted and the program's figures.
pub(crate) fn run(
    rig: &mut Rig,
    program: &ProgramSpec,
    path: &Path,
    spec: &TrialSpec,
) -> Result<(Collected, ProgramFigures), CampaignError> {
    let hosts = find_hosts(&*rig.network)?;
    let before = rig.ends.counters()?;
    let started_unix_ns = now_unix_ns();
    let first_ns = now_ns();
    let arguments = arguments_of(program, path, spec.probe.length, program.requests)?;
    let driven = drive(hosts, program, arguments, &Emulators::default(), || rig.ends.is_interrupted())?;
    let last_ns = now_ns();
    let after = rig.ends.counters()?;
    let counters = [0, 1].map(|host| foreign::increase(&before[host], &after[host]));
    let reports = reports(path, program, arguments, &driven, counters, [first_ns, last_ns]);
    let wall_ns = last_ns.saturating_sub(first_ns);
    let collected = Collected { started_unix_ns, wall_ns, limits: Limits::NONE, reports: Ok(vec![reports]) };
    Ok((collected, driven.observed.as_ref().map(figures_of).map_err(String::clone)))
}

/// Runs the program of a cell under emulators, which count, with a number of requests. The inner error says why the run
/// counts for nothing.
pub(crate) fn emulate(
    rig: &mut Rig,
    study: &Study,
    cell: &Cell,
    requests: u64,
    emulators: &Emulators,
) -> Result<Result<(), String>, CampaignError> {
    let program = study.program_of(cell).expect("a checked cell of a study of programs has one");
    let probe = study.probe(Probe::Program).expect("such a study has the probe");
    rig.network.configure(cell, rig.affinity(cell, Probe::Program))?;
    rig.begin(0)?;
    let path = rig.network.path(&study.link_config, cell);
    let arguments = arguments_of(program, &path, probe.length, requests)?;
    let driven =
        drive(find_hosts(&*rig.network)?, program, arguments, emulators, || rig.ends.is_interrupted())?;
    Ok(driven.observed.map(drop))
}

/// The hosts for programs, the client's first.
fn find_hosts(network: &dyn RigNetwork) -> Result<[&Host; 2], CampaignError> {
    network.tool_hosts().ok_or_else(|| {
        CampaignError::Usage(
            "programs run between namespaces of this kernel, and this testbed is inside a guest, where they are not installed: add the \
             missing modules to this kernel (stacklab doctor)"
                .to_owned(),
        )
    })
}

/// What the placeholders are in the commands of client and server.
fn arguments_of(
    program: &ProgramSpec,
    path: &Path,
    length: Length,
    requests: u64,
) -> Result<[ProgramArguments; 2], CampaignError> {
    let Length::Time(length_ns) = length else {
        return Err(CampaignError::Usage("a run of programs has a time".to_owned()));
    };
    let seconds = length_ns as f64 / 1e9;
    let hosts = [path.destination(), path.receiver.ip()];
    Ok(hosts.map(|host| ProgramArguments { host, port: program.port, seconds, requests }))
}

/// The reports of both hosts: what their kernels counted, and what the programs printed.
fn reports(
    path: &Path,
    program: &ProgramSpec,
    [of_client, of_server]: [ProgramArguments; 2],
    driven: &Driven,
    counters: [Counters; 2],
    [first_ns, last_ns]: [u64; 2],
) -> Ends<HostReport> {
    let Ends { sender, receiver } = foreign::endpoints(path, program.transport, program.port);
    let [client, server] = &driven.printed;
    let commands = [of_client.fill(&program.client), of_server.fill(&program.server)];
    let [by_client, by_server] = counters;
    let ends = [
        (Role::Sender, sender, by_client, &commands[0], client),
        (Role::Receiver, receiver, by_server, &commands[1], server),
    ];
    let mut reports = ends.map(|(role, endpoint, counters, command, output)| HostReport {
        counters,
        tool: output.as_ref().map(|output| ToolReport {
            version: program.name.clone(),
            command: command.clone(),
            output: foreign::shorten_output(output),
        }),
        ..HostReport::new(role, endpoint)
    });
    (reports[0].sent.first_ns, reports[0].sent.last_ns) = (first_ns, last_ns);
    (reports[1].received.first_ns, reports[1].received.last_ns) = (first_ns, last_ns);
    if let Ok(observed) = &driven.observed {
        let kind = (CpuScope::Threads, CpuSource::ThreadClocks);
        let used = [Some(observed.client_cpu), observed.server_cpu];
        for (report, used) in reports.iter_mut().zip(used) {
            report.cpu = used.map(|ChildCpu { user_ns, system_ns }| {
                CpuTime::of_processes(kind, observed.duration_ns, [user_ns, system_ns])
            });
        }
    }
    let [sender, receiver] = reports;
    Ends { sender, receiver }
}

/// The run of a program from its figures, unless the kernels' counts break a rule.
pub(crate) fn figures(path: &Path, own: ProgramFigures, reports: Ends<HostReport>) -> Figures {
    let reasons = match &own {
        Ok(_) => validate::program(path, &reports),
        Err(reason) => vec![reason.clone()],
    };
    Figures {
        status: RunStatus::of(reasons),
        values: own.unwrap_or_default(),
        drops: Drops::default(),
        warnings: Vec::new(),
        host_reports: reports.into_iter().collect(),
    }
}

fn figures_of(observed: &Observed) -> BTreeMap<Metric, Value> {
    let Observed { duration_ns, samples, client_cpu, server_cpu } = observed;
    let kilobytes = samples.count_bytes().iter().sum::<u64>() as f64 / 1e3;
    let client_ns = client_cpu.total_ns() as f64;
    let mut values = BTreeMap::from([
        (Metric::Duration, Value::Measured(*duration_ns as f64 / 1e6)),
        (
            Metric::InterfaceThroughput,
            match samples.rate() {
                Ok(bits_per_second) => Value::Measured(bits_per_second / 1e6),
                Err(reason) => Value::Missing(reason),
            },
        ),
        (Metric::CpuClient, Value::Measured(client_ns / 1e6)),
    ]);
    match server_cpu.map(|used| used.total_ns() as f64) {
        Some(server_ns) => {
            let per_kilobyte = (client_ns + server_ns) / kilobytes;
            values.insert(Metric::CpuServer, Value::Measured(server_ns / 1e6));
            values.insert(
                Metric::CpuPerKilobyte,
                Value::finite(per_kilobyte, "the interface carried no bytes"),
            );
        }
        None => {
            let lost = "a process of the server has ended and none has waited for it: its CPU time is lost";
            for metric in [Metric::CpuServer, Metric::CpuPerKilobyte] {
                values.insert(metric, Value::Missing(lost.to_owned()));
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use rate::Samples;
    use std::time::Duration;

    #[test]
    fn figures_are_of_the_clients_time_and_both_cpus() {
        let mut samples = Samples::new(Duration::from_millis(2));
        for place in 0..101 {
            samples.add(place * 2_000_000, [place * 1_000_000, 0]);
        }
        let [client_cpu, server_cpu] =
            [19_000_000, 79_000_000].map(|user_ns| ChildCpu { user_ns, system_ns: 1_000_000 });
        let observed =
            Observed { duration_ns: 250_000_000, samples, client_cpu, server_cpu: Some(server_cpu) };
        let found: Vec<(Metric, f64)> = figures_of(&observed)
            .into_iter()
            .filter_map(|(metric, value)| Some((metric, value.measured()?)))
            .collect();
        assert_eq!(
            found,
            [
                (Metric::Duration, 250.0),
                (Metric::InterfaceThroughput, 4000.0),
                (Metric::CpuClient, 20.0),
                (Metric::CpuServer, 80.0),
                // 100 ms over 100 MB.
                (Metric::CpuPerKilobyte, 1000.0),
            ]
        );
        let lost = figures_of(&Observed { server_cpu: None, ..observed });
        for metric in [Metric::CpuServer, Metric::CpuPerKilobyte] {
            assert!(lost[&metric].measured().is_none(), "{metric}");
        }
        assert_eq!(lost[&Metric::CpuClient].measured(), Some(20.0));
    }
}
