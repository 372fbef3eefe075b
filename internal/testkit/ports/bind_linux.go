package ports

import (
	"fmt"
	"syscall"
)

// bind binds a socket that does not listen, to any port for 0.
func bind(port int) (bound int, release func(), err error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil, err
	}
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	var at syscall.Sockaddr
	if err == nil {
		at, err = syscall.Getsockname(fd)
	}
	inet, ok := at.(*syscall.SockaddrInet4)
	if err == nil && !ok {
		err = fmt.Errorf("ports: bound to %T", at)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return 0, nil, err
	}
	return inet.Port, func() { _ = syscall.Close(fd) }, nil
}
