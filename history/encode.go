package history

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"
)

// A State is encoded as
//
//	state  = version flags turn began last labels cells gaps noted crc
//	began  = last = microseconds              signed varint
//	labels = count *(name call n)             texts behind their lengths
//	cells  = count *(term key step n)         term: 8 bytes, big-endian; key: unsigned varint
//	gaps   = count *(first last)
//	noted  = calls made results                where flags say so
//	made   = count *(at call)                  at: signed varint
//	result = count *(at call result)
//	crc    = CRC-32C of all before it, 4 bytes, little-endian
//
// with unsigned varints for turn and counts, and signed ones for step and n.

const (
	stateVersion = 1
	maxCallID    = 256
)

const (
	closedFlag = 1 << iota
	partialFlag
	stubFlag
	notedFlag
	allFlags = closedFlag | partialFlag | stubFlag | notedFlag
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is the error of bytes that are no State.
var ErrCorrupt = errors.New("what is kept of a thread was changed or damaged")

// Encode writes the state in bytes: at most about 200 kB.
func (s *State) Encode() []byte {
	b := make([]byte, 0, 64+20*len(s.cells)+64*len(s.labels))
	var flags byte
	for i, set := range [...]bool{s.Closed, s.Partial, s.Stub, s.noted()} {
		if set {
			flags |= 1 << i
		}
	}
	b = binary.AppendUvarint(append(b, stateVersion, flags), s.Turn)
	b = binary.AppendVarint(binary.AppendVarint(b, s.Began.UnixMicro()), s.Last.UnixMicro())
	b = binary.AppendUvarint(b, uint64(len(s.labels)))
	for i := range s.labels {
		l := &s.labels[i]
		for _, text := range [...]string{l.Name, l.Call} {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
		b = binary.AppendVarint(b, l.n)
	}
	b = binary.AppendUvarint(b, uint64(len(s.cells)))
	for i := range s.cells {
		c := &s.cells[i]
		b = binary.AppendUvarint(binary.BigEndian.AppendUint64(b, uint64(c.term)), c.key)
		b = binary.AppendVarint(binary.AppendVarint(b, c.step), c.n)
	}
	b = binary.AppendUvarint(b, uint64(len(s.gaps)))
	for _, g := range s.gaps {
		b = binary.AppendUvarint(binary.AppendUvarint(b, g.first), g.last)
	}
	if s.noted() {
		b = appendMade(appendMade(binary.AppendUvarint(b, uint64(s.calls)), s.made), s.results)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decoder reads what Encode has written; bad says that something else is there.
type decoder struct {
	in  []byte
	bad bool
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.in)) {
		d.bad, d.in = true, nil
		return nil
	}
	b := d.in[:n]
	d.in = d.in[n:]
	return b
}

func (d *decoder) unsigned() uint64 {
	n, used := binary.Uvarint(d.in)
	if used <= 0 {
		d.bad, used = true, 0
	}
	d.in = d.in[used:]
	return n
}

func (d *decoder) signed() int64 {
	n, used := binary.Varint(d.in)
	if used <= 0 {
		d.bad, used = true, 0
	}
	d.in = d.in[used:]
	return n
}

// count reads how many things follow, each of which takes some bytes.
func (d *decoder) count(most, bytes int) int {
	n := d.unsigned()
	if n > uint64(most) || n > uint64(len(d.in)/bytes) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) text(most uint64) string {
	n := d.unsigned()
	d.bad = d.bad || n > most
	if d.bad {
		return ""
	}
	return string(d.bytes(n))
}

func (d *decoder) time() time.Time { return time.UnixMicro(d.signed()) }

// DecodeState reads what Encode has written. The error of anything else is ErrCorrupt.
func DecodeState(b []byte) (*State, error) {
	const least = 4 + 2 // the checksum, version and flags
	if len(b) < least || b[0] != stateVersion || b[1] > allFlags {
		return nil, ErrCorrupt
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, ErrCorrupt
	}
	d := decoder{in: body[2:]}
	s := &State{Closed: b[1]&closedFlag != 0, Partial: b[1]&partialFlag != 0, Stub: b[1]&stubFlag != 0}
	s.Turn, s.Began, s.Last = d.unsigned(), d.time(), d.time()
	s.readLabels(&d)
	s.readCells(&d)
	s.readGaps(&d)
	if b[1]&notedFlag != 0 {
		s.calls, s.made, s.results = int64(d.unsigned()), readMade(&d, false), readMade(&d, true)
		d.bad = d.bad || s.calls < 0 || !s.noted()
	}
	if d.bad || len(d.in) > 0 {
		return nil, ErrCorrupt
	}
	return s, nil
}

func (s *State) readLabels(d *decoder) {
	n := d.count(MaxLabels, 3)
	if n > 0 {
		s.labels = make([]Label, 0, n)
	}
	for range n {
		l := Label{d.text(maxLabel), d.text(maxCallID), d.signed()}
		d.bad = d.bad || l.Name == "" || len(s.labels) > 0 && s.labels[len(s.labels)-1].Name >= l.Name
		s.labels = append(s.labels, l)
	}
}

func (s *State) readCells(d *decoder) {
	n := d.count(2*maxCells+MaxTerms*(steps+2), 11)
	if n > 0 {
		s.cells = make([]cell, 0, n)
	}
	for range n {
		var c cell
		if term := d.bytes(8); term != nil {
			c.term = ID(binary.BigEndian.Uint64(term))
		}
		c.key, c.step, c.n = d.unsigned(), d.signed(), d.signed()
		d.bad = d.bad || c.n == 0 || c.n < 0 && c.n != inexact || len(s.cells) > 0 && !s.cells[len(s.cells)-1].before(c.term, c.key, c.step)
		s.cells = append(s.cells, c)
	}
}

func (s *State) readGaps(d *decoder) {
	n := d.count(maxGaps, 2)
	if n > 0 {
		s.gaps = make([]span, 0, n)
	}
	last := uint64(0)
	for range n {
		g := span{d.unsigned(), d.unsigned()}
		d.bad = d.bad || g.first <= last || g.last < g.first || g.last >= s.Turn || g.last == math.MaxUint64
		last = g.last
		s.gaps = append(s.gaps, g)
	}
}

// noted reports whether calls are counted of the thread.
func (s *State) noted() bool { return s.calls > 0 || len(s.made)+len(s.results) > 0 }

func appendMade(b []byte, all []made) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, m := range all {
		b = binary.AppendUvarint(binary.AppendVarint(b, m.at), m.call)
		if m.result != 0 {
			b = binary.AppendUvarint(b, m.result)
		}
	}
	return b
}

func readMade(d *decoder, results bool) []made {
	all := make([]made, d.count(MaxEqual, 2))
	for i := range all {
		m := made{at: d.signed(), call: d.unsigned()}
		if results {
			m.result = d.unsigned()
			d.bad = d.bad || m.result == 0
		}
		d.bad = d.bad || m.call == 0 || i > 0 && all[i-1].compare(m) > 0
		all[i] = m
	}
	return all
}
