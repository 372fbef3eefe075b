package framing

import "sync"

// maxGathered bounds the bytes that are gathered before they are written.
const maxGathered = 64 << 10

// gathered are the buffers of writes that were released.
var gathered = sync.Pool{New: func() any {
	b := make([]byte, 0, 16<<10)
	return &b
}}

// Hold has writes gathered until Release, which writes them at once. net/http writes a piece of a
// stream of more than 4 KiB by three calls of the system: what fills its buffer, the rest, and the
// end of the chunk. It writes from one goroutine at a time, and so must the callers of these two.
func (c *conn) Hold() {
	if c.buffered == nil {
		c.buffered = gathered.Get().(*[]byte)
	}
}

// Release writes what was gathered. If that fails, the connection is closed, as net/http closes one
// that it cannot write to, and so the context of the request ends; writes that follow fail.
func (c *conn) Release() {
	buffered := c.buffered
	if buffered == nil {
		return
	}
	c.buffered = nil
	_, _ = c.writeOut(*buffered)
	*buffered = (*buffered)[:0]
	gathered.Put(buffered)
}

// Write is like that of net.Conn, but between Hold and Release.
func (c *conn) Write(p []byte) (int, error) {
	switch {
	case c.writeErr != nil:
		return 0, c.writeErr
	case c.buffered == nil:
		return c.Conn.Write(p)
	case len(*c.buffered)+len(p) > maxGathered:
		if _, err := c.writeOut(*c.buffered); err != nil {
			return 0, err
		}
		*c.buffered = (*c.buffered)[:0]
		return c.writeOut(p)
	}
	*c.buffered = append(*c.buffered, p...)
	return len(p), nil
}

// writeOut writes bytes that net/http takes for written already.
func (c *conn) writeOut(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if n, err = c.Conn.Write(p); err != nil {
		c.writeErr = err
		_ = c.Conn.Close()
	}
	return n, err
}
