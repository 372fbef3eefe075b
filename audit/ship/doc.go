// Package ship sends the records of the audit log to a collector as OTLP log records, beside the
// file, which stays the truth.
//
// The queue is the file itself. A shipper reads the files behind the log's writer, only records
// that are durable, and keeps in shipped.json up to which record the collector has them. So nothing of it is on the path of a call, its
// memory is that of one batch, and a collector that is slow, refuses or is away delays its own copy and nothing else: what it lacks is sent
// when it is back, also after a restart. A record may be sent twice, after a failure or a crash; its seq and hash say that it is the same.
//
// The body of a log record is the line of the file, byte for byte. The copy can thus be held
// against the file, and its chain be verified by itself.
//
// A record is lost to the collector in two cases, which are counted and reported: it is in no
// file any more, or not as it was written, when its turn comes; or the collector refuses it and
// takes others.
package ship
