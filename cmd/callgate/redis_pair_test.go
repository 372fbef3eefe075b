package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/lossy"
)

// redisPair is a master and its replica, each behind a relay, and three sentinels
// that promote the replica where the master is away for a second. Everybody knows
// the two by their relays alone, so that harm is done to everything that is said to
// one: by the gateways, by the sentinels, and by the other.
type redisPair struct {
	servers   [2]*redisServer
	relays    [2]*lossy.Proxy
	sentinels [3]*redisServer
}

const pairName = "calls"

// newPair returns when the sentinels know the replica, and that it follows.
func newPair(t testing.TB) *redisPair {
	t.Helper()
	p := &redisPair{}
	for i := range p.servers {
		p.servers[i] = newRedis(t)
		p.relays[i] = lossy.New(t, p.servers[i].address())
	}
	p.start(t, 0, -1)
	p.start(t, 1, 0)
	for i := range p.sentinels {
		s := newRedis(t)
		s.file = filepath.Join(s.dir, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nlogfile %s\n", s.port, s.dir, filepath.Join(s.dir, "log")) +
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2\n", pairName, p.relays[0].Port()) +
			fmt.Sprintf("sentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 3000\n", pairName, pairName)
		if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.args = []string{"--sentinel"}
		s.start(t)
		p.sentinels[i] = s
	}
	eventually(t, "the sentinels know the replica and each other", func() bool {
		for _, s := range p.sentinels {
			reply, err := s.try(time.Second, "SENTINEL REPLICAS "+pairName, "SENTINEL SENTINELS "+pairName)
			if err != nil || strings.Count(reply, "master-link-status\r\n$2\r\nok") != 1 || strings.Count(reply, "\r\nvoted-leader\r\n") != 2 {
				return false
			}
		}
		return true
	})
	return p
}

// start starts one of the two, empty: as a replica of the one that is named, or, with
// -1, as a master.
func (p *redisPair) start(t testing.TB, at, of int) {
	t.Helper()
	s := p.servers[at]
	s.args = []string{
		"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", strconv.Itoa(p.relays[at].Port()),
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
	}
	if of >= 0 {
		s.args = append(s.args, "--replicaof", "127.0.0.1", strconv.Itoa(p.relays[of].Port()))
	}
	s.start(t)
}

// master is who the sentinels say it is; -1 where they cannot tell.
func (p *redisPair) master() int {
	for _, s := range p.sentinels {
		reply, err := s.try(time.Second, "SENTINEL GET-MASTER-ADDR-BY-NAME "+pairName)
		if err != nil {
			continue
		}
		for i, r := range p.relays {
			_, port, _ := net.SplitHostPort(r.Address())
			if strings.HasSuffix(reply, "\r\n"+port+"\r\n") {
				return i
			}
		}
	}
	return -1
}

// masters tells whether one of the two takes itself for a master.
func (p *redisPair) masters(at int) bool {
	reply, err := p.servers[at].try(time.Second, "ROLE")
	return err == nil && strings.Contains(reply, "\r\nmaster\r\n")
}

// failedOver waits until one of the two is the master, and all sentinels say so: one that does not
// know it yet would take the other, which comes back as a replica, for a master that answers,
// and need half a minute to correct that. Sentinels whose machine stood still for two seconds do
// nothing for half a minute.
func (p *redisPair) failedOver(t testing.TB, to int) {
	t.Helper()
	want := "\r\n" + strconv.Itoa(p.relays[to].Port()) + "\r\n"
	within(t, recoveryTimeout, "the replica is promoted", func() bool {
		for _, s := range p.sentinels {
			if reply, err := s.try(time.Second, "SENTINEL GET-MASTER-ADDR-BY-NAME "+pairName); err != nil || !strings.HasSuffix(reply, want) {
				return false
			}
		}
		return p.masters(to)
	})
}
