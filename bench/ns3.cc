/* Stations that always have a frame for their access point, in ns-3's 802.11n: MCS 15, 40 MHz, short guard interval, 2.4 GHz,
   best effort. Prints what the access point received, Mbit/s of UDP payload.

     ns3 STATIONS PAYLOAD PACKET FRAMES SECONDS SEED

   PAYLOAD is the message that is counted; PACKET what UDP carries, with what a cipher adds; FRAMES the most that an A-MPDU
   holds. */
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace ns3;

static uint64_t messages;

static void received(Ptr<const Packet>, const Address &)
{
	messages++;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "usage: ns3 STATIONS PAYLOAD PACKET FRAMES SECONDS SEED\n");
		return 2;
	}
	unsigned stations = atoi(argv[1]), payload = atoi(argv[2]), packet = atoi(argv[3]), frames = atoi(argv[4]);
	double seconds = atof(argv[5]), warmup = 1;
	RngSeedManager::SetSeed(1);
	RngSeedManager::SetRun(atoi(argv[6]));

	/* QoS header 26, LLC 8, IP 20, UDP 8, FCS 4; with its delimiter of 4 a frame takes a multiple of 4. */
	unsigned mpdu = 26 + 8 + 20 + 8 + packet + 4, subframe = (4 + mpdu + 3) / 4 * 4;
	unsigned ampdu = frames * subframe;

	/* What was not acknowledged is sent again at once, as mac80211 does, and not asked for. */
	Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(false));

	NodeContainer ap(1), sta(stations);
	YansWifiChannelHelper channel = YansWifiChannelHelper::Default();
	YansWifiPhyHelper phy;
	phy.SetChannel(channel.Create());
	phy.Set("ChannelSettings", StringValue("{3, 40, BAND_2_4GHZ, 0}"));
	phy.Set("Antennas", UintegerValue(2));
	phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(2));
	phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(2));
	WifiHelper wifi;
	wifi.SetStandard(WIFI_STANDARD_80211n);
	wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("HtMcs15"), "ControlMode",
		StringValue("ErpOfdmRate24Mbps"), "NonUnicastMode", StringValue("ErpOfdmRate6Mbps"));
	WifiMacHelper mac;
	Ssid ssid("stacklab");
	mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(ampdu), "BE_MaxAmsduSize",
		UintegerValue(0));
	NetDeviceContainer devices = wifi.Install(phy, mac, ap);
	mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid), "BE_MaxAmpduSize", UintegerValue(ampdu), "BE_MaxAmsduSize",
		UintegerValue(0));
	devices.Add(wifi.Install(phy, mac, sta));
	for (uint32_t at = 0; at < devices.GetN(); at++)
		DynamicCast<WifiNetDevice>(devices.Get(at))->GetHtConfiguration()->SetShortGuardIntervalSupported(true);

	/* All stations are as far from the access point. */
	MobilityHelper mobility;
	Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
	places->Add(Vector(0, 0, 0));
	for (unsigned at = 0; at < stations; at++)
		places->Add(Vector(std::cos(2 * M_PI * at / stations), std::sin(2 * M_PI * at / stations), 0));
	mobility.SetPositionAllocator(places);
	mobility.Install(ap);
	mobility.Install(sta);

	InternetStackHelper internet;
	internet.Install(ap);
	internet.Install(sta);
	Ipv4AddressHelper addresses("198.18.0.0", "255.255.255.0");
	Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
	InetSocketAddress to(interfaces.GetAddress(0), 5300);
	PacketSinkHelper sink("ns3::UdpSocketFactory", to);
	ApplicationContainer sinks = sink.Install(ap.Get(0));
	Simulator::Schedule(Seconds(warmup), [&] { sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&received)); });
	OnOffHelper source("ns3::UdpSocketFactory", to);
	source.SetConstantRate(DataRate("320Mbps"), packet);
	for (unsigned at = 0; at < stations; at++)
		source.Install(sta.Get(at)).Start(Seconds(0.3 + 0.01 * at));

	Simulator::Stop(Seconds(warmup + seconds));
	Simulator::Run();
	printf("%.2f\n", messages * payload * 8 / seconds / 1e6);
	Simulator::Destroy();
}
