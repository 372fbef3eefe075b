package boltstore

import (
	"path/filepath"
	"testing"
)

// A file whose transaction has not ended, as one that panics while it is rolled back, holds nobody who closes it.
func TestClosingWaitsForNoTransaction(t *testing.T) {
	db, err := openDB(filepath.Join(t.TempDir(), FileName))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := closeFile(db); err == nil {
		t.Error("it is closed")
	}
	if err := tx.Rollback(); err != nil { // and what waits in closeFile goes on
		t.Error(err)
	}
}
