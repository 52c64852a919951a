BEGIN TRANSACTION;
CREATE TABLE controls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    action TEXT NOT NULL,         -- pause resume step stop lr
    value REAL,
    created REAL NOT NULL
);
INSERT INTO "controls" VALUES(1,2,'pause',NULL,1.79530644116798949244e+09);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,            -- engine version and hash of the config: names the result
    config TEXT NOT NULL,         -- canonical JSON
    status TEXT NOT NULL,         -- queued running paused finished diverged stopped failed
    origin TEXT NOT NULL,         -- here, sweep (a cell of one), shipped, shipped sweep
    created REAL NOT NULL, started REAL, ended REAL,  -- seconds since 1970
    pid INTEGER,                  -- of the process that trains it
    probes TEXT NOT NULL,         -- keys of the rows of steps.layers, in order
    device TEXT, threads INTEGER, parameters INTEGER,
    chance REAL, floor REAL, text TEXT,
    bad_step INTEGER, bad_layer INTEGER, bad_where TEXT,
    message TEXT                  -- why it failed
);
INSERT INTO "runs" VALUES(1,'e1-4a53347dea036228','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":0.003,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"pre","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','finished','here',1.79530644116725730894e+09,1.79530644116737771037e+09,1.79530644116765928262e+09,1,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy','cpu',1,10,3.3,1.1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(2,'e1-00ce14c0b2d64012','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":0.003,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"post","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','queued','here',1.79530644116797494886e+09,NULL,NULL,17683,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(3,'e1-fe14996a26dde4a3','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":1.0,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"pre","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','diverged','here',1.79530644116819214817e+09,1.79530644116837549209e+09,1.79530644116840839381e+09,1,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy','cpu',1,10,3.3,1.1,NULL,0,1,'activation',NULL);
INSERT INTO "runs" VALUES(4,'e1-4a53347dea036228','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":0.003,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"pre","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','stopped','here',1.79530644116850543025e+09,NULL,1.79530644116854357725e+09,17683,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(5,'e1-4a53347dea036228','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":0.003,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"pre","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','failed','here',1.79530644116862845424e+09,NULL,1.7953064411686663628e+09,17683,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'no memory');
INSERT INTO "runs" VALUES(6,'e1-4a53347dea036228','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":0.003,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"pre","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','finished','sweep',1795306441.16879,1.79530644116879868499e+09,1795306441.16882,17683,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy','cpu',1,10,3.3,1.1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(7,'e1-4a53347dea036228','{"activation":"relu","batch":8,"beta1":0.9,"beta2":0.999,"clip":null,"data_seed":0,"depth":1,"device":"auto","dropout":0.0,"ffn_ratio":4,"heads":2,"init":"xavier","init_seed":0,"lr":0.003,"lr_edits":[],"momentum":0.0,"norm":"layernorm","optimizer":"adamw","qk_norm":"off","schedule":"constant","scheme":"pre","seq_len":32,"steps":2,"task":"markov","v_norm":"off","warmup":0,"weight_decay":0.0,"width":16}','finished','shipped',1.79530644116894960403e+09,1.79530644116896176331e+09,1.79530644117709517479e+09,17683,'grad_block grad_w2 grad_qk grad_hidden stream_rms branch_ratio update_ratio token_cosine attn_logit_max attn_entropy','cpu',1,10,3.3,1.1,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE steps (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    loss REAL,                    -- NULL is NaN (SQLite has none); inf is stored as it is
    lr REAL NOT NULL,
    grad_norm REAL,               -- likewise
    layers BLOB,                  -- float64 [probes, L+1], little-endian, or NULL where not recorded
    PRIMARY KEY (run, step)
) WITHOUT ROWID;
INSERT INTO "steps" VALUES(1,0,3.5,0.001,1.0,X'000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F');
INSERT INTO "steps" VALUES(1,1,3.25,0.001,1.0,NULL);
INSERT INTO "steps" VALUES(6,0,3.5,0.001,1.0,X'000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F');
INSERT INTO "steps" VALUES(6,1,3.25,0.001,1.0,NULL);
INSERT INTO "steps" VALUES(7,0,3.5,0.001,1.0,X'000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F000000000000F03F');
INSERT INTO "steps" VALUES(7,1,3.25,0.001,1.0,NULL);
CREATE TABLE supervisor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    pid INTEGER NOT NULL,
    ready INTEGER NOT NULL        -- 1 once a warm worker waits
);
INSERT INTO "supervisor" VALUES(1,4194303,0);
CREATE INDEX runs_by_key ON runs (key);
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX controls_by_run ON controls (run, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',7);
INSERT INTO "sqlite_sequence" VALUES('controls',1);
COMMIT;
PRAGMA user_version = 1;
