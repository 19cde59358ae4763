create table account(id integer primary key, owner text, balance integer, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 400)
insert into account select i, 'owner ' || i, 1000, hex(zeroblob(100)) from n;
-- measured
begin;
update account set balance = balance - 1, note = hex(randomblob(100)) where id % 40 = abs(random()) % 40;
update account set balance = balance + 10 where id = 1 + abs(random()) % 400;
commit;
