// Package sse reads and writes server-sent events (WHATWG HTML, section 9.2): the format
// text/event-stream. Streams of models and of tool servers come in through Reader; the
// faces answer through Writer.
//
// A stream is a sequence of lines, each ended by LF, CR or CRLF. An empty line ends an
// event:
//
//	event: NAME     optional
//	data: TEXT      several are joined by LF
//	: TEXT          a comment
//
// Reader is strict where a proxy may have cut a stream: an event without the empty line
// after it is ignored. It is bounded: a line, or the data of an event, over MaxBytes is an
// error. Writer never lets data leave its event: a line end in it begins another data line.
package sse
