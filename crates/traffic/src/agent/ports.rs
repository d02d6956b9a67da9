//! What an agent does with sockets for many connections.

use super::{Agent, MAX_RECEIVERS, RequestWork, lock};
use crate::engine::many_ports::ManyPorts;
use crate::protocol::message::Answer;
use crate::protocol::ports::{AnswersToSend, MessagesToPorts, MessagesToTake, PortsToOpen};
use std::sync::{Arc, Mutex};

impl Agent {
    pub(super) fn open_ports(&mut self, id: u64, asked: &PortsToOpen) -> Result<RequestWork, String> {
        if self.ports.len() >= MAX_RECEIVERS {
            return Err(format!("refused to open ports: they are open for {MAX_RECEIVERS} arms"));
        }
        let opened = ManyPorts::open(asked)?;
        let ports = opened.ports.clone();
        self.ports.insert(id, Arc::new(Mutex::new(opened)));
        Ok(RequestWork::Done(Answer::PortsOpen { ports }))
    }

    fn find_ports(&self, opened: u64) -> Result<Arc<Mutex<ManyPorts>>, String> {
        let found = self.ports.get(&opened).ok_or("unknown ports: no request to open them came before")?;
        Ok(Arc::clone(found))
    }

    pub(super) fn send_to_ports(&self, asked: MessagesToPorts) -> Result<RequestWork, String> {
        let ports = self.find_ports(asked.opened)?;
        Ok(RequestWork::Lasting(Box::new(move || Ok(Answer::SentToPorts(lock(&ports).send(&asked)?)))))
    }

    pub(super) fn take_from_ports(&self, asked: MessagesToTake) -> Result<RequestWork, String> {
        let ports = self.find_ports(asked.opened)?;
        Ok(RequestWork::Lasting(Box::new(move || Ok(Answer::TakenFromPorts(lock(&ports).take(&asked)?)))))
    }

    pub(super) fn answer_from_ports(&self, asked: AnswersToSend) -> Result<RequestWork, String> {
        let ports = self.find_ports(asked.opened)?;
        Ok(RequestWork::Lasting(Box::new(move || Ok(Answer::SentToPorts(lock(&ports).answer(&asked)?)))))
    }

    pub(super) fn close_ports(&mut self, opened: u64) -> Result<RequestWork, String> {
        self.ports.remove(&opened).ok_or("unknown ports: no request to open them came before")?;
        Ok(RequestWork::Done(Answer::PortsClosed))
    }
}
