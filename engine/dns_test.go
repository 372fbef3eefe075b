package engine_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
)

// names answers questions of the DNS on loopback. Each name has its answers in
// turn, the last of them for ever; a name that it does not know does not exist.
type names struct {
	mu       sync.Mutex
	answers  map[string][][]string
	requests map[string]int
}

// resolver returns a resolver that asks names and nobody else.
func (n *names) resolver(t testing.TB) *net.Resolver {
	t.Helper()
	n.requests = map[string]int{}
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		buffer := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := n.reply(buffer[:size]); reply != nil {
				conn.WriteTo(reply, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); served.Wait() })
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

const headerBytes = 12

// reply answers one question (RFC 1035, section 4).
func (n *names) reply(query []byte) []byte {
	if len(query) < headerBytes {
		return nil
	}
	var labels []string
	at := headerBytes
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end > len(query) {
			return nil
		}
		labels = append(labels, strings.ToLower(string(query[at+1:end])))
		at = end
	}
	if at+5 > len(query) {
		return nil
	}
	kind := binary.BigEndian.Uint16(query[at+1:])
	question := query[headerBytes : at+5]
	name := strings.Join(labels, ".")

	n.mu.Lock()
	answers, known := n.answers[name]
	var addresses []string
	if known && kind == 1 {
		addresses = answers[min(n.requests[name], len(answers)-1)]
		n.requests[name]++
	}
	n.mu.Unlock()

	flags := uint16(0x8180)
	if !known {
		flags |= 3 // no such name
	}
	reply := append([]byte{}, query[:2]...)
	for _, field := range []uint16{flags, 1, uint16(len(addresses)), 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, field)
	}
	reply = append(reply, question...)
	for _, address := range addresses {
		reply = append(reply, 0xc0, headerBytes, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, net.ParseIP(address).To4()...)
	}
	return reply
}
