//! The table of metrics agrees with itself.

use super::*;

#[test]
fn metric_of_one_transport_is_not_for_the_other() {
    use Metric::*;
    for metric in [TcpSrtt, Retransmits, TransferTimeRatio, TcpEfficiency, BufferDelay] {
        assert!(metric.applies_to(Transport::Tcp) && !metric.applies_to(Transport::Udp), "{metric}");
    }
    for metric in [Loss, Duplicate, Reorder, RttInterface, EchoLoss] {
        assert!(metric.applies_to(Transport::Udp) && !metric.applies_to(Transport::Tcp), "{metric}");
    }
    for metric in Metric::ALL {
        let transports = Transport::ALL.iter().filter(|transport| metric.applies_to(**transport));
        assert!(transports.count() > 0, "{metric} applies to no transport");
    }
}

#[test]
fn a_unit_is_written_alike_in_records_and_reports() {
    for metric in Metric::ALL {
        let unit = metric.unit();
        assert_eq!(serde_json::to_string(&unit).unwrap(), format!("{:?}", unit.symbol()));
    }
}

#[test]
fn metrics_that_may_be_zero_compare_by_difference() {
    use Metric::*;
    for metric in [CpuReceiverSoftirq, CpuGeneratorSender, BufferDelay, MemorySockets, PacingError, Fairness]
    {
        assert_eq!(metric.scale(), Scale::Difference, "{metric}");
    }
    for metric in [CpuSender, CpuPerGbitReceiver, SenderCpuPerMessage, TransferTimeRatio, Throughput, Rtt] {
        assert_eq!(metric.scale(), Scale::Ratio, "{metric}");
    }
    assert_eq!((Loss.difference_margin(), Stalls.difference_margin()), (0.001, 0.5));
}

#[test]
fn events_of_a_run_are_counted_per_message() {
    use Metric::*;
    for metric in [Retransmits, IpFragCreates, IpReasmOks, IpFragCreatesRouters, IpReasmOksRouters] {
        assert_eq!((metric.unit(), metric.scale()), (Unit::PerMessage, Scale::Difference), "{metric}");
        // Half an event per message would hide a half of all messages.
        assert!(metric.difference_margin() <= 0.01, "{metric}");
    }
}

#[test]
fn cpu_scope_is_for_host_time_and_not_generator_time() {
    let scoped: Vec<_> = Metric::ALL.iter().filter(|metric| metric.is_host_cpu()).map(|m| m.name()).collect();
    assert_eq!(scoped.len(), 14, "{scoped:?}");
    assert!(scoped.iter().all(|name| name.contains("cpu_") && !name.contains("generator")), "{scoped:?}");
}
