// SPDX-License-Identifier: Apache-2.0

// A memo and its e-mail in one transaction, with database/sql:
//
//	DATABASE_URL=postgresql://... ./memo DEPARTMENT TITLE RECIPIENT BODY
//
// Prints the memo's id. On any error nothing of either is kept.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "github.com/lib/pq"
)

const insertMemo = `
	INSERT INTO memos (memo_number_prefix, department_code, title) VALUES ('MEMO', $1, $2) RETURNING id`

const insertEmail = `
	INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type, idempotency_key)
	VALUES ($1::uuid, 'memo.created', jsonb_build_object('subject', $2::text, 'body', $3::text), $4::text, 'MEMO_CREATED',
	        $1::uuid || '-memo.created-' || md5($4::text))`

func createMemo(ctx context.Context, db *sql.DB, department, title, recipient, body string) (string, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // does nothing after a commit
	var id string
	if err := tx.QueryRowContext(ctx, insertMemo, department, title).Scan(&id); err != nil {
		return "", fmt.Errorf("insert memo: %w", err)
	}
	if _, err := tx.ExecContext(ctx, insertEmail, id, "Memo "+title+" created", body, recipient); err != nil {
		return "", fmt.Errorf("insert e-mail: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	return id, nil
}

func run() error {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close()
	id, err := createMemo(context.Background(), db, os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err == nil {
		fmt.Println(id)
	}
	return err
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: memo DEPARTMENT TITLE RECIPIENT BODY")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "memo:", err)
		os.Exit(1)
	}
}
