//go:build !unix

package outbound

import (
	"errors"
	"net"
)

// prober cannot read without waiting here, so no connection is proven to be open.
type prober struct{}

func newProber(net.Conn) *prober { return &prober{} }

func (*prober) readNow([]byte) (int, error) { return 0, errors.ErrUnsupported }
