package boltstore

import (
	"encoding/binary"
	"runtime"
)

// blocks are bytes in a memory of a fixed size, in chains of blocks: so a record of any length has room
// where there are enough blocks, wherever they are, and none is ever moved. A block begins with the
// number of the next one; 0 is none.
type blocks struct {
	memory []byte
	used   uint32 // blocks that were ever used
	free   uint32 // the first of those that are free again
}

const (
	blockBytes = 256
	blockRoom  = blockBytes - 4
)

// blocksFor is how many blocks a number of bytes takes.
func blocksFor(n int) int { return (n + blockRoom - 1) / blockRoom }

// newBlocks returns n blocks, which are released with what owns them.
func newBlocks(owner *brief, n int) blocks {
	memory, release := mapped(max(1, n) * blockBytes)
	runtime.AddCleanup(owner, release, memory)
	return blocks{memory: memory}
}

func (b *blocks) at(block uint32) []byte {
	return b.memory[int(block-1)*blockBytes : int(block)*blockBytes]
}

func (b *blocks) next(block uint32) uint32 { return binary.LittleEndian.Uint32(b.at(block)) }

// write writes a record, of which there are two parts, in as many blocks as it takes. They must be free.
func (b *blocks) write(head, rest []byte) (first uint32) {
	var last []byte
	for len(head)+len(rest) > 0 {
		block := b.free
		if block != 0 {
			b.free = b.next(block)
		} else {
			b.used++
			block = b.used
		}
		if last == nil {
			first = block
		} else {
			binary.LittleEndian.PutUint32(last, block)
		}
		last = b.at(block)
		n := copy(last[4:], head)
		head = head[n:]
		rest = rest[copy(last[4+n:], rest):]
	}
	if last != nil {
		binary.LittleEndian.PutUint32(last, 0)
	}
	return first
}

// read fills a record with the bytes of a chain.
func (b *blocks) read(block uint32, record []byte) {
	for n := 0; n < len(record); block = b.next(block) {
		n += copy(record[n:], b.at(block)[4:])
	}
}

// release frees the blocks of a chain.
func (b *blocks) release(first uint32) {
	last := first
	for next := b.next(last); next != 0; next = b.next(last) {
		last = next
	}
	binary.LittleEndian.PutUint32(b.at(last), b.free)
	b.free = first
}
