package app

import (
	"net"
	"sync/atomic"
)

// publicURL is the URL of this gateway as its clients see it. It is safe for concurrent
// use.
type publicURL struct {
	stated string // by server.public_url
	listen atomic.Pointer[net.TCPAddr]
}

// listening sets the address that the gateway listens on.
func (b *publicURL) listening(at net.Addr) {
	if tcp, ok := at.(*net.TCPAddr); ok {
		b.listen.Store(tcp)
	}
}

// url is the configured URL, or the address the gateway listens on if that is a loopback
// address, which only this machine reaches. It is empty if it is not known.
func (b *publicURL) url() string {
	at := b.listen.Load()
	switch {
	case b.stated != "":
		return b.stated
	case at == nil || !at.IP.IsLoopback():
		return ""
	}
	return "http://" + at.String()
}
