// Package search finds records in audit logs: in the files of one log or of several, rotated or
// not, however long they are, and also while they are written.
//
// The files are read in pieces, several at a time, from the newest record or from the oldest.
// Most lines are only searched for the bytes that a match must have: a line is decoded if it has
// all of them. So a search runs at the speed of the disk, and its memory is that of a few pieces,
// whatever the length of the log.
//
// A line that may match and is not as it was written is reported with its file and number. The
// rest of the chain is for audit.Verifier to check.
package search
