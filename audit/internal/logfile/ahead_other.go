//go:build !linux

package logfile

import "os"

func aheadHelps(string) bool { return false }

func datasync(f *os.File) error { return f.Sync() }
