// Package audit is the decision log: one record for every decision and every
// outcome, durable before the act, in a chain that shows what was changed.
//
// # The file
//
// The folder data_dir belongs to one process at a time: the file lock in it
// is locked while the process lives, and names it. The log is audit.jsonl
// there. Files that were rotated, by the log itself or by hand, keep a name that
// matches audit*.jsonl; a new audit.jsonl continues the newest of them, and Verify
// takes them all, oldest first.
//
//	log    = *line
//	line   = `{"seq":` seq `,` members `,"prev":"` hash `","hash":"` hash `"}` LF
//	seq    = decimal, from 1, one more each line
//	hash   = 64 lower-case hex digits
//
// A line is one JSON object in printable ASCII: every other character is a \u
// escape, so nothing in a line can hide, imitate or steer a terminal. hash is
// SHA-256 over the line's bytes up to `,"hash"`, which occurs once in a line;
// prev is the hash of the line before, 64 zeros before the first.
//
// Readers pass over events and members that they do not know: later versions may write more
// of them. Nothing that is left out changes what the rest of the log says.
//
// # What is promised
//
// A nil error of Append says that the record is written and synced, at its
// place in the chain. After any other result the record is removed from the file
// again: after a failed, short or late write the file is truncated to the last
// confirmed record before anything else is written. So seq has no gap, the chain has
// no fork, and a record whose Append was refused can be appended again without being
// there twice.
//
// One case remains. If the process dies, or the disk keeps failing until it
// ends, between the moment a record's bytes reach the disk and the moment they
// are confirmed or truncated, a record whose Append was refused can stay. Such a
// decision was never executed. It looks like one whose execution was lost, so treat
// it as that: outcome unknown. An incomplete line is never confirmed; Open truncates
// it.
//
// A failed sync is never repeated on the same descriptor, since the kernel may have
// dropped the pages. The file is opened again, the last confirmed record is read
// back, the rest is truncated, and that is synced. While that fails, every Append is
// refused; it is tried again with growing pauses, so service resumes by itself. A file
// that another process changed, moved or removed is not repaired: every Append is
// refused until it is as it was.
//
// # Zeros ahead
//
// With Options.Preallocate, the file that is written has zeros behind its last line, and records are
// written in their place: synced = `,"synced":` seq, the last of members, is the last record that was
// confirmed before. Zeros at the end of a file are no part of the log. A crash can leave any sectors of
// the last batch, and zeros for the others: that is an incomplete end, unless a whole record in it has a
// synced behind the last record before the zeros, which was confirmed then and is lost. If records
// of the last batch alone are overwritten by zeros, that looks like a crash, as if the end was cut off.
//
// # Checkpoints
//
// A chain shows every change but two: that its end is missing, and that all
// from some record on was rewritten. With a key, the log therefore signs
// checkpoints, called heads on disk, in a file beside it: "seq N of this chain has
// this hash".
//
//	heads  = *head                      ; heads.jsonl
//	head   = signed `,"signature":"` base64 `"}` LF
//	signed = `{"head":` n `,"chain":"` id `","seq":` seq `,"hash":"` hash `","time":"` time `","key":"` key `"`
//
// The signature is Ed25519 over "callgate audit head", LF and signed. Head 1
// stands for the empty log, n grows by one and seq by at least one a line. A
// checkpoint follows within 1,024 records or five seconds, at the end of each file,
// and on closing; no record waits for one, and none claims a record that is not
// durable. While checkpoints cannot be written the log continues for 30 seconds, and
// then refuses every record. Open refuses a log that does not confirm its last
// checkpoint, and a log that has records and no checkpoints: to sign it would be to
// vouch for whatever was put there. Records behind the last checkpoint are not
// protected; nor are those behind an earlier one, if the checkpoints after it are cut
// off too: Verifier takes a copy of the checkpoints that was kept elsewhere.
//
// # Snapshots
//
// A start needs the calls without an outcome. After every 16,384 records the log saves in
// snapshot.json which calls are open at its last durable record, with that record's seq,
// hash and place, and OpenCalls reads on from there. The file is replaced whole and has a
// checksum; with a key it is signed, over "callgate audit snapshot", LF and the snapshot.
//
// # Replay
//
// A store that is shared and has lost what it had learns from the logs of those who share it which
// keys and approvals are used up. Replay reads what it needs of one.
package audit
