(* A person with several rows.

   Rows are sampled independently, as before; neighbours differ by all rows of
   one person. If she has a rows, all in one cell, the smallest delta is again one
   gain at one worst n. For rows in any cells, removing them one after the other
   gives a bound (with E = e^(epsilon/m) it is the one that docs/proofs.md states).
   The sharper bound by composing dominating pairs over cells is on paper. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial Crowd Tables.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Groups.
Variable R : realFieldType.
Implicit Types (b E d : R) (a i k m n : nat) (S : pred nat).

(* One cell, with a rows more or less. *)
Definition group_private b E k a d : Prop := forall n S,
  law b k (n + a) S <= E * law b k n S + d /\ law b k n S <= E * law b k (n + a) S + d.

(* Where all a rows lie in one cell: removal at the first n >= k-1 with
   (1-b)^a prod_{l=1..a} (n+l)/(n+l-k+1) <= E, and addition likewise at 1/E. *)
Theorem group_exact_delta b E a i n n' : 0 < b -> b < 1 -> 1 <= E ->
    worst b E a i n -> worst b E^-1 a i n' ->
  group_private b E i.+1 a (Num.max (gain b E a i.+1 n) (loss b E a i.+1 n')) /\
  forall d, group_private b E i.+1 a d ->
    Num.max (gain b E a i.+1 n) (loss b E a i.+1 n') <= d.
Proof.
move=> b_gt0 b_lt1 E_ge1 worst_n worst_n'; split=> [m S | d private_d].
  split; first apply: le_trans (removal_core b_gt0 b_lt1 E_ge1 worst_n m S) _;
  last apply: le_trans (addition_core b_gt0 b_lt1 E_ge1 worst_n' m S) _;
  by rewrite ler_add2l le_maxr lexx ?orbT.
rewrite le_maxl; apply/andP; split.
  have [+ _] := private_d n (fun j => i.+1 <= j)%N.
  by rewrite !law_shown // /gain ler_subl_addl.
have [_] := private_d n' (predC (fun j => i.+1 <= j)%N).
by rewrite !law_setC !law_shown // /loss -ler_subl_addl.
Qed.

(* Where E (1-b)^a >= 1 addition costs nothing. *)
Theorem group_exact_delta_free_addition b E a i n : 0 < b -> b < 1 -> 1 <= E ->
    worst b E a i n -> 1 <= E * (1 - b) ^+ a ->
  group_private b E i.+1 a (gain b E a i.+1 n) /\
  forall d, group_private b E i.+1 a d -> gain b E a i.+1 n <= d.
Proof.
move=> b_gt0 b_lt1 E_ge1 worst_n E_large; split=> [m S | d private_d].
  split; first exact: removal_core.
  apply: le_trans (addition_free b_gt0 b_lt1 i.+1 E_large m S) _.
  by rewrite ler_addl (gain_worst_ge0 b_gt0 b_lt1 _ worst_n) // (le_trans _ E_ge1).
have [+ _] := private_d n (fun j => i.+1 <= j)%N.
by rewrite !law_shown // /gain ler_subl_addl.
Qed.

(* The same for whole tables: neighbours differ by the set Q of a person's rows. *)
Theorem group_tables b E k d (I C : finType) (cell : I -> C) (T Q : {set I}) c0
    (S : pred {ffun C -> nat}) : 0 < b -> b < 1 ->
    Q \subset T -> (forall r, r \in Q -> cell r = c0) -> group_private b E k #|Q| d ->
  release cell b k T S <= E * release cell b k (T :\: Q) S + d /\
  release cell b k (T :\: Q) S <= E * release cell b k T S + d.
Proof.
move=> b_gt0 b_lt1 sub_QT in_c0 private_d.
have outer : (T :\: Q) :\: [set i | cell i == c0] = T :\: [set i | cell i == c0].
  rewrite setDDl; congr (_ :\: _); apply/setUidPr/subsetP => r /in_c0 r_c0.
  by rewrite inE r_c0.
have card_T : #|part cell T c0| = (#|part cell (T :\: Q) c0| + #|Q|)%N.
  rewrite addnC -(cardsID Q (part cell T c0)); congr (_ + _)%N; apply: eq_card => r; rewrite !inE.
    case: (boolP (r \in Q)) => [r_Q | _]; last by rewrite andbF.
    by rewrite (subsetP sub_QT) // in_c0 // eqxx.
  by rewrite andbA.
by split; apply: (@release_one_cell _ _ _ cell _ _ _ _ _ _ c0) => // U;
  rewrite card_T; case: (private_d #|part cell (T :\: Q) c0| U).
Qed.

(* Rows in any cells: one after the other. *)
Theorem group_chain b E k d (I C : finType) (cell : I -> C) (T Q : {set I})
    (S : pred {ffun C -> nat}) : 0 < b -> b < 1 -> 0 <= E ->
    Q \subset T -> private b E k d ->
  release cell b k T S <= E ^+ #|Q| * release cell b k (T :\: Q) S + (\sum_(i < #|Q|) E ^+ i) * d /\
  release cell b k (T :\: Q) S <= E ^+ #|Q| * release cell b k T S + (\sum_(i < #|Q|) E ^+ i) * d.
Proof.
move=> b_gt0 b_lt1 E_ge0 sub_QT /(one_cell_decides E k d b_gt0 b_lt1) tables.
elim/set_ind: Q sub_QT => [_ | Q r r_Q IH sub_QT].
  by rewrite setD0 cards0 expr0 mul1r big_ord0 mul0r addr0.
have sub_Q'T : Q :\ r \subset T by apply: subset_trans sub_QT; rewrite subsetDl.
have r_in : r \in T :\: (Q :\ r) by rewrite !inE eqxx (subsetP sub_QT).
have rest : (T :\: (Q :\ r)) :\ r = T :\: Q by rewrite setDDl setUC setD1K.
have [up down] := tables I C I id cell (T :\: (Q :\ r)) r S r_in.
have [chain_up chain_down] := IH sub_Q'T.
have comp : cell \o id = cell by [].
rewrite rest comp in up down; rewrite (cardsD1 r Q) r_Q add1n.
set N := #|Q :\ r| in chain_up chain_down *.
have EN_ge0 : 0 <= E ^+ N by rewrite exprn_ge0.
split.
  apply: le_trans chain_up _.
  apply: le_trans (ler_add (ler_wpmul2l EN_ge0 up) (lexx _)) _.
  by rewrite big_ord_recr /= exprSr le_eqVlt; apply/orP; left; apply/eqP; ring.
apply: le_trans down _.
apply: le_trans (ler_add (ler_wpmul2l E_ge0 chain_down) (lexx _)) _.
have -> : \sum_(i < N.+1) E ^+ i = 1 + E * \sum_(i < N) E ^+ i.
  by rewrite big_ord_recl expr0 mulr_sumr; congr (_ + _); apply: eq_bigr => i _; rewrite lift0 exprS.
by rewrite exprS le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

End Groups.

(* In an archimedean field the worst n exist. *)
Lemma worst_from (R : realFieldType) (b E : R) a i N : (i <= N)%N ->
  mass b i (N + a) <= E * mass b i N -> exists n, worst b E a i n.
Proof.
move=> le_iN at_N; pose P n := (i <= n)%N && (mass b i (n + a) <= E * mass b i n).
have exP : exists n, P n by exists N; rewrite /P le_iN.
exists (ex_minn exP); case: ex_minnP => n /andP [le_in at_n] n_min; apply/and3P; split=> //.
apply/forallP => m; apply/implyP => le_im; rewrite ltNge; apply/negP => at_m.
by have := n_min m; rewrite /P le_im at_m leqNgt ltn_ord => /(_ isT).
Qed.

(* The ratio of a more trials, with the binomial coefficients cancelled, at least as Bernoulli bounds it. *)
Lemma ratio_bound (R : realFieldType) (b : R) a i n : 0 < b -> b < 1 -> (i <= n)%N ->
  mass b i (n + a) * (1 - a%:R * i%:R / n.+1%:R) <= (1 - b) ^+ a * mass b i n.
Proof.
move=> b_gt0 b_lt1 le_in; have q_ge0 : 0 <= 1 - b by rewrite subr_ge0 ltW.
have N_gt0 m : 0 < m.+1%:R :> R by rewrite ltr0n.
elim: a => [|a IH]; first by rewrite addn0 !mul0r subr0 mulr1 mul1r.
have le_ia : (i <= n + a)%N by rewrite (leq_trans le_in) ?leq_addr.
have step : mass b i (n + a).+1 * (1 - i%:R / n.+1%:R) <= (1 - b) * mass b i (n + a).
  have trial := mass_trial b i (n + a); rewrite natrB ?leqW // in trial.
  have -> : (1 - b) * mass b i (n + a) = mass b i (n + a).+1 * (1 - i%:R / (n + a).+1%:R).
    have N_neq0 := lt0r_neq0 (N_gt0 (n + a)%N); apply: (mulIf N_neq0).
    transitivity (mass b i (n + a).+1 * ((n + a).+1%:R - i%:R)); first by rewrite trial; ring.
    by move: (_.+1%:R) N_neq0 => N N_neq0; field.
  rewrite ler_wpmul2l ?mass_ge0 // ler_sub // ler_wpmul2l ?ler0n // lef_pinv ?qualifE //.
  by rewrite ler_nat ltnS leq_addr.
rewrite addnS.
case: (lerP (0 : R) (1 - a%:R * i%:R / n.+1%:R)) => [pos | neg]; last first.
  have neg' : 1 - a.+1%:R * i%:R / n.+1%:R <= 0 :> R.
    apply: le_trans (ltW neg); rewrite ler_sub // ler_wpmul2r ?invr_ge0 ?ler0n //.
    by rewrite ler_wpmul2r ?ler0n // ler_nat.
  apply: le_trans (mulr_ge0_le0 (mass_ge0 b_gt0 b_lt1 _ _) neg') _.
  by rewrite mulr_ge0 ?exprn_ge0 ?mass_ge0.
have prod : 1 - a.+1%:R * i%:R / n.+1%:R
    <= (1 - i%:R / n.+1%:R) * (1 - a%:R * i%:R / n.+1%:R) :> R.
  rewrite -subr_ge0 [leRHS](_ : _ = a%:R * (i%:R / n.+1%:R) ^+ 2); last first.
    by move: (n.+1%:R^-1) => y; ring.
  by rewrite mulr_ge0 ?ler0n ?sqr_ge0.
apply: le_trans (ler_wpmul2l (mass_ge0 b_gt0 b_lt1 _ _) prod) _; rewrite mulrA.
apply: le_trans (ler_wpmul2r pos step) _; rewrite exprS -[leLHS]mulrA -[leRHS]mulrA.
exact: ler_wpmul2l.
Qed.

Theorem worst_exists (R : archiFieldType) (b E : R) a i : 0 < b -> b < 1 -> 0 < E ->
  (1 - b) ^+ a < E -> exists n, worst b E a i n.
Proof.
move=> b_gt0 b_lt1 E_gt0 small.
pose c := 1 - (1 - b) ^+ a / E.
have c_gt0 : 0 < c by rewrite subr_gt0 ltr_pdivr_mulr ?mul1r.
pose n := maxn i (Num.ExtraDef.archi_bound (a%:R * i%:R / c)).
have le_in : (i <= n)%N by rewrite leq_maxl.
apply: (@worst_from _ _ _ _ _ n) => //.
have N_gt0 : 0 < n.+1%:R :> R by rewrite ltr0n.
have qE : (1 - b) ^+ a / E <= 1 - a%:R * i%:R / n.+1%:R :> R.
  have /archi_boundP/ltW bound : 0 <= a%:R * i%:R / c :> R.
    by rewrite divr_ge0 ?mulr_ge0 ?ler0n // ltW.
  have : a%:R * i%:R / c <= n.+1%:R by apply: le_trans bound _; rewrite ler_nat leqW // leq_maxr.
  rewrite ler_pdivr_mulr // => bound_c.
  rewrite [leLHS](_ : _ = 1 - c) ?ler_sub //; last by rewrite /c opprB addrCA subrr addr0.
  by rewrite ler_pdivr_mulr // [leRHS]mulrC.
have qa_gt0 : 0 < (1 - b) ^+ a by rewrite exprn_gt0 // subr_gt0.
have m_ge0 := mass_ge0 b_gt0 b_lt1 i (n + a).
rewrite -(ler_pmul2l qa_gt0) [leRHS]mulrCA.
apply: le_trans (ler_wpmul2l (ltW E_gt0) (ratio_bound a b_gt0 b_lt1 le_in)).
rewrite ler_pdivr_mulr // in qE; rewrite [leRHS]mulrCA [leLHS]mulrC.
by apply: ler_wpmul2l; rewrite // mulrC.
Qed.
