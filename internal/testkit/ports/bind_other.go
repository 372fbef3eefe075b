//go:build !linux

package ports

import (
	"fmt"
	"net"
)

// bind finds a free port, and cannot hold it here.
func bind(port int) (bound int, release func(), err error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0, nil, err
	}
	return l.Addr().(*net.TCPAddr).Port, func() {}, l.Close()
}
