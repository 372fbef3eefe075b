// Package codec writes calls in bytes, for the packages boltstore and redisstore.
package codec

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"time"

	"github.com/callgate/callgate/store"
)

// A call is encoded as
//
//	record = version *field crc
//	field  = length bytes        length: unsigned varint
//	crc    = CRC-32C of all before it, 4 bytes, little-endian
//
// with the fields in the order in which fieldCodec.call lists them. The result has a
// table of its own.

// The versions of records. A call of version 1 has no note, only one of version 3 has used
// approvals, only one of version 4 a group, only one of version 5 the node that has decided
// it, only one of version 6 a ledger, and only one of version 7 what its result has added to that: others are written as before, so that an
// earlier Callgate reads them.
const (
	codecVersion = 1
	callVersion  = 2
	usingVersion = 3
	groupVersion = 4
	nodeVersion  = 5

	ledgerVersion  = 6
	countedVersion = 7
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	// ErrCorrupt is the error of bytes that fail their checksum.
	ErrCorrupt = errors.New("a record fails its checksum: the file was changed or damaged")
)

// fieldCodec is one pass over the fields of a call: it writes them to out, or reads
// them from in. One list of fields serves both, so that they cannot disagree.
type fieldCodec struct {
	reading bool
	out, in []byte
	version byte
	bad     bool
}

// next returns the next field of what is read.
func (f *fieldCodec) next() []byte {
	n, used := binary.Uvarint(f.in)
	if used <= 0 || n > uint64(len(f.in)-used) {
		f.bad, f.in = true, nil
		return nil
	}
	field := f.in[used : used+int(n)]
	f.in = f.in[used+int(n):]
	return field
}

func (f *fieldCodec) bytes(b *[]byte) {
	if f.reading {
		*b = append([]byte(nil), f.next()...)
		return
	}
	f.out = append(binary.AppendUvarint(f.out, uint64(len(*b))), *b...)
}

func (f *fieldCodec) text(s *string) {
	if f.reading {
		*s = string(f.next())
		return
	}
	f.out = append(binary.AppendUvarint(f.out, uint64(len(*s))), *s...)
}

func (f *fieldCodec) number(n *int64) {
	if f.reading {
		b := f.next()
		value, used := binary.Varint(b)
		*n, f.bad = value, f.bad || used != len(b) || used <= 0
		return
	}
	var digits [binary.MaxVarintLen64]byte
	used := binary.PutVarint(digits[:], *n)
	f.out = append(append(f.out, byte(used)), digits[:used]...)
}

func (f *fieldCodec) time(t *time.Time) {
	var ms int64
	if !t.IsZero() {
		ms = t.UnixMilli()
	}
	f.number(&ms)
	if *t = (time.Time{}); ms != 0 {
		*t = time.UnixMilli(ms)
	}
}

// delivery is 1 where a result was delivered, and 2 where by the attempt that ended the call.
func (f *fieldCodec) delivery(c *store.Call) {
	var n int64
	switch {
	case c.DeliveredByEnding:
		n = 2
	case c.Delivered:
		n = 1
	}
	f.number(&n)
	c.Delivered, c.DeliveredByEnding = n != 0, n == 2
}

func (f *fieldCodec) count(c *int) {
	n := int64(*c)
	f.number(&n)
	*c = int(n)
}

func (f *fieldCodec) call(c *store.Call) {
	state, step := string(c.State), string(c.Step)
	for _, s := range []*string{&c.ID, &c.Scope.Principal, &c.Scope.Workspace, &c.Scope.Project, &c.Key, &c.Digest, &state, &step, &c.Owner,
		&c.FinishedBy} {
		f.text(s)
	}
	f.task(&c.Task)
	f.count(&c.Attempts)
	f.count(&c.Answer.Status)
	for _, t := range []*time.Time{&c.Opened, &c.Until, &c.Ended} {
		f.time(t)
	}
	f.delivery(c)
	if f.version >= callVersion {
		f.bytes(&c.Metadata)
		if len(c.Metadata) == 0 {
			c.Metadata = nil
		}
	}
	if f.version >= nodeVersion {
		f.text(&c.DecidedBy)
	}
	if f.version >= ledgerVersion {
		f.text(&c.Task.Ledger)
	}
	if f.version >= countedVersion {
		turn, adds := int64(c.Counted.Turn), strings.Join(c.Counted.Adds, "\n")
		f.number(&turn)
		if f.text(&adds); f.reading {
			c.Counted = store.Counted{Turn: uint64(turn), Adds: strings.Split(adds, "\n")}
		}
	}
	c.State, c.Step = store.State(state), store.Step(step)
}

func (f *fieldCodec) task(t *store.Task) {
	for _, s := range []*string{&t.Tool, &t.Version, &t.Agent, &t.Effect, &t.Caller, &t.RequestID, &t.Trace, &t.Thread, &t.Input,
		&t.Config} {
		f.text(s)
	}
	f.bytes(&t.Arguments)
	if f.version < usingVersion {
		return
	}
	using := strings.Join(t.Using, " ")
	f.text(&using)
	if f.reading {
		t.Using = strings.Fields(using)
	}
	if f.version >= groupVersion {
		f.text(&t.Group)
	}
}

// versionOf is the version to write a call in.
func versionOf(c *store.Call) byte {
	switch {
	case c.Counted.Turn != 0:
		return countedVersion
	case c.Task.Ledger != "":
		return ledgerVersion
	case c.DecidedBy != "":
		return nodeVersion
	case c.Task.Group != "":
		return groupVersion
	case len(c.Task.Using) > 0:
		return usingVersion
	}
	return callVersion
}

// appendChecksum ends a record that begins at a place of out.
func appendChecksum(f fieldCodec, at int) []byte {
	return binary.LittleEndian.AppendUint32(f.out, crc32.Checksum(f.out[at:], castagnoli))
}

func verifyChecksum(b []byte) (fieldCodec, error) {
	if len(b) < 5 || b[0] < codecVersion || b[0] > countedVersion {
		return fieldCodec{}, ErrCorrupt
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return fieldCodec{}, ErrCorrupt
	}
	return fieldCodec{reading: true, in: body[1:], version: b[0]}, nil
}

// EncodeCall encodes a call, with a version and a checksum.
func EncodeCall(c store.Call) []byte {
	return AppendCall(make([]byte, 0, 512+len(c.Task.Arguments)+len(c.Metadata)), c)
}

// AppendCall is EncodeCall at the end of a buffer.
func AppendCall(to []byte, c store.Call) []byte {
	version := versionOf(&c)
	f := fieldCodec{out: append(to, version), version: version}
	f.call(&c)
	return appendChecksum(f, len(to))
}

// DecodeCall decodes a call of any version. The error of damaged bytes is ErrCorrupt.
func DecodeCall(b []byte) (c store.Call, err error) {
	f, err := verifyChecksum(b)
	if err != nil {
		return c, err
	}
	f.call(&c)
	if f.bad || len(f.in) > 0 || c.Step.Rank() == 0 {
		return store.Call{}, ErrCorrupt
	}
	return c, nil
}

// CallID returns the id of a call from the beginning of its record; nil where that is too short for it.
func CallID(record []byte) []byte {
	if len(record) == 0 {
		return nil
	}
	f := fieldCodec{in: record[1:]}
	return f.next()
}
