// Package cli holds what the commands and the packages that print for them share: errors
// that decide the exit code, and output as lines of JSON or as a table.
package cli

import "errors"

// These errors end a command that has printed its reasons, so that nothing more is said.
var (
	ErrRefused      = errors.New("refused")       // exit code 1
	ErrInvalidLines = errors.New("invalid lines") // exit code 2
)

// PeerError is a fault of a program that was asked, such as a gateway that is away: exit code 3.
type PeerError struct{ Err error }

func (e PeerError) Error() string { return e.Err.Error() }

// InternalError is a fault of Callgate itself: exit code 3. Its text is for operators.
type InternalError struct{ Err error }

func (e InternalError) Error() string { return e.Err.Error() }
