# packages: sqlite3
# records: sqlite3
# version: sqlite3 --version
cat >load.sql <<'END'
create table t(a integer primary key, b text, c real);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, 'row ' || (i * 7919 % 20000), i * 1.5 from n;
commit;
create index ib on t(b);
select count(*), sum(a), avg(c) from t where b like 'row 1%';
create virtual table f using fts5(x);
insert into f select b from t limit 2000;
select count(*) from f where f match 'row';
select json_group_array(a) from t where a < 6;
update t set c = c + a where a % 3 = 0;
vacuum;
pragma integrity_check;
END
sqlite3 base.db <load.sql
sqlite3 base.db .dump | sha256sum
sqlite3 base.db 'select nothing' 2>/dev/null || echo "status $?"
